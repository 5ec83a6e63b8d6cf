#include "weir/worker/endpoints.hpp"

#include "weir/base/log.hpp"
#include "weir/link/message.hpp"
#include "weir/net/addressee.hpp"

namespace weir::worker {

namespace {

using Reply = boost::asio::awaitable<Result<net::Response>>;
using Answer = std::function<Reply(Endpoints&, net::Request&)>;

bool has_token(const net::Request& request, const Secret& token) {
  std::string_view given = request.header("authorization");
  constexpr std::string_view kScheme = "Bearer ";
  return given.starts_with(kScheme) && equal_constant_time(given.substr(kScheme.size()), token.reveal());
}

Error unknown_camera() { return {Errc::not_found, "camera_not_found", "this worker has no such camera"}; }

void add(net::Router& router, Endpoints& endpoints, net::Method method, std::string_view path, bool guarded,
         Answer answer) {
  router.add(method, path,
             [&endpoints, guarded, answer = std::move(answer)](net::Request& request)
                 -> boost::asio::awaitable<net::Response> {
               if (!net::names_loopback(request.header("host")))
                 co_return net::Response::failure({Errc::forbidden, "bad_host", "only a loopback host name is answered"});
               if (guarded && !has_token(request, endpoints.token))
                 co_return net::Response::failure(
                     {Errc::unauthorized, "token_invalid", "the bearer token of this worker's boot is needed"});
               auto made = co_await answer(endpoints, request);
               co_return made ? std::move(*made) : net::Response::failure(made.error());
             });
}

json::array list_of(const std::vector<Trouble>& troubles) {
  json::array out;
  for (const Trouble& each : troubles) out.push_back(json::object{{"camera_uuid", each.camera.str()}, {"what", each.what}});
  return out;
}

// The manager replaces a worker that has not answered for too long; where no new worker starts, it offers the cameras
// to other runners.
Error is_mute() {
  return {Errc::unavailable, "publisher_stuck",
          "the disk of the spool does not answer: events are neither published nor kept; only a new worker ends that"};
}

Reply healthz(Endpoints& e, net::Request&) {
  if (e.mute()) co_return is_mute();
  if (std::vector<Trouble> troubles = e.worker.troubles(); !troubles.empty()) {
    const Trouble& first = troubles.front();
    std::string more = troubles.size() == 1 ? "" : fmt::format(", and {} more", troubles.size() - 1);
    co_return Error{Errc::unavailable, "thread_stuck",
                    fmt::format("camera {}: {}{}; only a new worker ends that", first.camera.str(), first.what, more),
                    {{"cameras", list_of(troubles)}}};
  }
  co_return net::Response::json(json::object{{"status", "ok"}, {"standby", e.worker.standby()},
                                             {"draining", e.worker.draining()}});
}

Reply ready(Endpoints& e, net::Request&) {
  Readiness r = e.worker.readiness();
  json::object body{{"ready", r.ready}, {"cameras", r.cameras}, {"delivering", r.delivering}};
  co_return net::Response::json(body, r.ready ? 200 : 503);
}

Reply metrics(Endpoints& e, net::Request& request) {
  if (auto meant = net::meant_for(request, e.runner.str()); !meant) co_return meant.error();
  co_return net::Response::text(e.metrics.text(), 200, "text/plain; version=0.0.4; charset=utf-8");
}

Reply state(Endpoints& e, net::Request&) {
  if (e.mute()) co_return is_mute();
  json::object body = e.worker.state();
  body["stuck"] = list_of(e.worker.troubles());
  co_return net::Response::json(body);
}

// What the manager judges the worker by; the page for people is /state.
Reply look(Endpoints& e, net::Request&) {
  if (e.mute()) co_return is_mute();
  co_return net::Response::json(link::write_look(e.worker.look()));
}

Reply drain(Endpoints& e, net::Request&) {
  e.drain();
  co_return net::Response::json(link::write_answer(link::Drain{}), 202);
}

Reply terminate(Endpoints& e, net::Request&) {
  e.terminate();
  co_return net::Response::json(json::object{{"terminating", true}}, 202);
}

// Deadlines, losses, and where and by which token to publish, in one message.
Reply leases(Endpoints& e, net::Request& request) {
  CO_TRY(body, json::parse_text(request.body));
  CO_TRY(message, link::read_lease_message(body));
  e.set_bus(message.base_url, message.token);
  for (const LeaseGrant& grant : message.items) e.worker.grant(grant);
  for (const CameraId& camera : message.lost) e.worker.lose(camera);
  co_return net::Response::json(link::write_answer(std::move(message)));
}

Reply activate(Endpoints& e, net::Request& request) {
  CO_TRY(body, json::parse_text(request.body));
  CO_TRY(message, link::read_activate(body));
  e.worker.set_activated();
  for (const LeaseGrant& grant : message.items) e.worker.grant(grant);
  co_return net::Response::json(link::write_answer(std::move(message)));
}

// The old worker's half of a cutover: it goes on decoding and stops publishing.
Reply silence(Endpoints& e, net::Request& request) {
  CO_TRY(body, json::parse_text(request.body));
  CO_TRY(message, link::read_silence(body));
  std::vector<link::LastWord> said;
  for (const CameraId& camera : message.cameras) {
    std::optional<WallTime> last = co_await e.worker.silence(camera);
    said.push_back({camera, last});
  }
  co_return net::Response::json(link::write_answer(std::move(message), said));
}

Reply sources(Endpoints& e, net::Request& request) {
  CO_TRY(body, json::parse_text(request.body));
  CO_TRY(message, link::read_change_sources(body, e.worker.max_fps()));
  if (e.worker.draining() && !message.add.empty())
    co_return Error{Errc::unprocessable, "draining", "this worker is draining"};
  for (const Source& source : message.add) e.worker.add(source);
  std::vector<link::LastWord> said;
  for (const CameraId& camera : message.remove) {
    std::optional<WallTime> last = co_await e.worker.remove(camera);
    said.push_back({camera, last});
  }
  co_return net::Response::json(link::write_answer(std::move(message), said));
}

// A picture is made as large and as good as fits, with its JSON around it, into one request that a control plane takes.
constexpr size_t kSnapshotBytesMax = 700 << 10;
std::string fitting_jpeg(const Picture& picture) {
  std::string jpeg;
  for (auto [width, quality] : {std::pair{1280, 85}, {1280, 70}, {960, 70}, {640, 70}, {320, 60}}) {
    jpeg = picture.to_jpeg(width, quality);
    if (jpeg.size() <= kSnapshotBytesMax) break;
  }
  return jpeg;
}

Reply snapshot(Endpoints& e, net::Request& request) {
  std::string name = request.param("camera");
  if (!name.ends_with(".jpg")) co_return unknown_camera();
  CO_TRY(camera, CameraId::parse(name.substr(0, name.size() - 4)));
  PicturePtr picture = e.worker.latest(camera);
  if (!picture) co_return Error{Errc::not_found, "no_picture", "this worker has no picture of that camera"};
  std::string jpeg = fitting_jpeg(*picture);
  if (jpeg.empty()) co_return Error{Errc::unavailable, "no_picture", "the picture cannot be encoded"};
  net::Response response = net::Response::text(std::move(jpeg), 200, "image/jpeg");
  response.headers.emplace_back("X-Captured-At", to_iso(picture->captured));
  response.headers.emplace_back("Cache-Control", "no-store");
  co_return response;
}

}  // namespace

void add_endpoints(net::Router& router, Endpoints& endpoints) {
  using net::Method;
  add(router, endpoints, Method::get, "/healthz", true, healthz);
  add(router, endpoints, Method::get, "/metrics", false, metrics);
  add(router, endpoints, Method::get, "/ready", true, ready);
  add(router, endpoints, Method::get, "/state", true, state);
  add(router, endpoints, Method::get, link::kLookRoute, true, look);
  add(router, endpoints, Method::post, link::Drain::route, true, drain);
  add(router, endpoints, Method::post, "/terminate", true, terminate);
  add(router, endpoints, Method::post, link::Leases::route, true, leases);
  add(router, endpoints, Method::post, link::Activate::route, true, activate);
  add(router, endpoints, Method::post, link::Silence::route, true, silence);
  add(router, endpoints, Method::post, link::ChangeSources::route, true, sources);
  add(router, endpoints, Method::get, "/snapshot/{camera}", true, snapshot);
}

}  // namespace weir::worker
