#include "weir/detector/endpoints.hpp"

#include "weir/base/json.hpp"
#include "weir/net/addressee.hpp"
#include "weir/net/token.hpp"

namespace weir::detector {

namespace {

using net::Method;
using net::Response;
using Answer = boost::asio::awaitable<Response>;

constexpr int kImageWidthMax = 1920, kImageQuality = 85;

Status admit(const net::Request& request, const Secret& token) {
  if (!token.empty()) {
    auto shown = net::credential_of(request.header("authorization"), "Bearer");
    if (shown && equal_constant_time(*shown, token.reveal())) return ok();
    return Error{Errc::unauthorized, "token_invalid", "this worker's bearer token is needed"};
  }
  if (!request.header("origin").empty())
    return Error{Errc::forbidden, "bad_origin", "a worker without a token does not answer web pages"};
  if (!net::names_loopback(request.header("host")))
    return Error{Errc::forbidden, "bad_host", "a worker without a token answers under a loopback host name only"};
  return ok();
}

Result<Response> image(const Roster& roster, const std::string& camera) {
  PicturePtr picture = roster.latest(camera);
  if (!picture && !roster.knows(camera))
    return Error{Errc::not_found, "camera_not_found", "this worker has no subscription of that camera"};
  if (!picture) return Error{Errc::not_found, "no_picture", "this worker has no picture of that camera yet"};
  std::string jpeg = picture->to_jpeg(kImageWidthMax, kImageQuality);
  if (jpeg.empty()) return Error{Errc::unavailable, "no_picture", "the picture cannot be encoded"};
  Response response = Response::text(std::move(jpeg), 200, "image/jpeg");
  response.headers.emplace_back("X-Captured-At", to_iso(picture->captured));
  response.headers.emplace_back("Cache-Control", "no-store");
  return response;
}

}  // namespace

void add_endpoints(net::Router& router, const Endpoints& endpoints) {
  router.add(Method::get, "/", [endpoints](net::Request& request) -> Answer {
    if (Status may = admit(request, endpoints.token); !may) co_return Response::failure(may.error());
    Response response;
    response.socket = [&master = endpoints.master](net::WebSocket& socket) { return master.converse(socket); };
    co_return response;
  });
  router.add(Method::get, "/camera/{camera}/image", [endpoints](net::Request& request) -> Answer {
    if (Status may = admit(request, endpoints.token); !may) co_return Response::failure(may.error());
    auto made = image(endpoints.roster, request.param("camera"));
    co_return made ? std::move(*made) : Response::failure(made.error());
  });
  router.add(Method::get, "/healthz", [](net::Request&) -> Answer {
    co_return Response::json(json::object{{"status", "ok"}});
  });
  router.add(Method::get, "/metrics", [endpoints](net::Request&) -> Answer {
    co_return Response::text(endpoints.metrics.text(), 200, "text/plain; version=0.0.4; charset=utf-8");
  });
}

}  // namespace weir::detector
