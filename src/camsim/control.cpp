#include "weir/camsim/control.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace weir::camsim {

namespace asio = boost::asio;
using net::Method;
using net::Request;
using net::Response;

namespace {

struct NewCamera {
  std::string recorder;
  CameraSpec spec;
};
template <class V>
void fields(V& v, NewCamera& n) {
  v.required("recorder", n.recorder);
  fields(v, n.spec);
}

bool names_loopback(std::string_view host) {
  host = host.substr(0, host.starts_with('[') ? host.find(']') + 1 : host.find(':'));
  return host == "127.0.0.1" || host == "localhost" || host == "[::1]";
}

template <class T>
Result<T> body_of(const Request& request) {
  return json::read_text<T>(request.body, json::Unknown::reject);
}

Result<json::value> done(const Status& status) {
  if (!status) return status.error();
  return json::value(json::object{{"ok", true}});
}

}  // namespace

void Control::add(net::Router& router, Method method, std::string_view pattern, Command command) {
  auto shared = std::make_shared<Command>(std::move(command));
  router.add(method, pattern, [this, shared](Request& request) -> asio::awaitable<Response> {
    if (!names_loopback(request.header("host")))
      co_return Response::failure({Errc::forbidden, "bad_host", "this endpoint answers on loopback only"});
    auto result = std::make_shared<Result<json::value>>(json::value());
    auto run = [](std::shared_ptr<Command> what, Request* with,
                  std::shared_ptr<Result<json::value>> into) -> asio::awaitable<void> {
      *into = (*what)(*with);
      co_return;
    };
    // A command cannot be cancelled: a client that no longer waits for it must not end the pool's thread that runs it.
    auto to_its_end = asio::bind_cancellation_slot(asio::cancellation_slot(), asio::use_awaitable);
    co_await asio::co_spawn(commands_, run(shared, &request, result), to_its_end);
    co_return *result ? Response::json(**result) : Response::failure(result->error());
  });
}

void Control::add_routes(net::Router& router) {
  add(router, Method::get, "/v1/cameras", [this](Request&) {
    return Result<json::value>(json::object{{"cameras", simulator_.cameras()}});
  });
  add(router, Method::get, "/v1/recorders", [this](Request&) {
    return Result<json::value>(json::object{{"recorders", simulator_.recorders()}});
  });
  add(router, Method::get, "/v1/dials", [this](Request&) { return Result<json::value>(simulator_.dials()); });
  add(router, Method::del, "/v1/dials", [this](Request&) {
    simulator_.reset_dials();
    return done(ok());
  });
  add(router, Method::post, "/v1/cameras", [this](Request& request) -> Result<json::value> {
    TRY(body, body_of<NewCamera>(request));
    return done(simulator_.add_camera(body.recorder, body.spec));
  });
  add(router, Method::post, "/v1/recorders", [this](Request& request) -> Result<json::value> {
    TRY(body, body_of<RecorderSpec>(request));
    return done(simulator_.add_recorder(body));
  });
  add(router, Method::post, "/v1/cameras/{name}/fault", [this](Request& request) -> Result<json::value> {
    TRY(body, body_of<CameraFault>(request));
    return done(simulator_.set_camera_fault(request.param("name"), body));
  });
  add(router, Method::post, "/v1/recorders/{name}/fault", [this](Request& request) -> Result<json::value> {
    TRY(body, body_of<RecorderFault>(request));
    return done(simulator_.set_recorder_fault(request.param("name"), body));
  });
}

}  // namespace weir::camsim
