#include "weir/cluster/endpoints.hpp"

#include "weir/base/json.hpp"

namespace weir::cluster {

namespace {

using net::Method;
using net::Response;
using Answer = boost::asio::awaitable<Response>;

}  // namespace

void add_endpoints(net::Router& router, Backend& backend, net::Metrics& metrics) {
  router.add(Method::get, "/healthz", [](net::Request&) -> Answer {
    co_return Response::json(json::object{{"status", "ok"}});
  });
  router.add(Method::get, "/readyz", [&backend](net::Request&) -> Answer {
    json::object body{{"ready", backend.ready()}};
    if (!backend.ready()) body["reason"] = "the control plane has not answered yet";
    co_return Response::json(body, backend.ready() ? 200 : 503);
  });
  router.add(Method::get, "/metrics", [&metrics](net::Request&) -> Answer {
    co_return Response::text(metrics.text(), 200, "text/plain; version=0.0.4; charset=utf-8");
  });
}

}  // namespace weir::cluster
