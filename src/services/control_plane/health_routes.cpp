#include "plane.hpp"

namespace weir::control_plane {

namespace {

constexpr Duration kReadyWithin = 1s;

Reply alive(Plane&, net::Request&) { co_return net::Response::json(json::object{{"status", "ok"}}); }

Reply ready(Plane& plane, net::Request&) {
  Status answer = co_await plane.readiness.ask(kReadyWithin);
  // Whatever the store's error is, the client learns only that it does not answer; the ticker logs the cause.
  if (!answer) co_return Error{Errc::unavailable, "store_unavailable", "the store does not answer"};
  co_return net::Response::json(json::object{{"status", "ready"}});
}

Reply metrics(Plane& plane, net::Request&) {
  co_return net::Response::text(plane.metrics.text(), 200, "text/plain; version=0.0.4; charset=utf-8");
}

}  // namespace

void add_health_routes(net::Router& router, Plane& plane) {
  add_open(router, plane, net::Method::get, "/healthz", alive);
  add_open(router, plane, net::Method::get, "/readyz", ready);
  add_open(router, plane, net::Method::get, "/metrics", metrics);
}

}  // namespace weir::control_plane
