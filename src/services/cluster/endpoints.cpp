#include "weir/cluster/endpoints.hpp"

#include "weir/base/json.hpp"

namespace weir::cluster {

namespace {

using net::Method;
using net::Response;
using Answer = boost::asio::awaitable<Response>;

Status admit(const net::Request& request, const net::TokenKey& key, WallTime now) {
  auto token = net::credential_of(request.header("authorization"), "Bearer");
  if (!token) return Error{Errc::unauthorized, "token_missing", "this route needs a bearer token"};
  TRY(claims, key.verify(*token, now));
  bool allowed = claims.role == net::Role::admin || claims.role == net::Role::viewer;
  if (allowed && claims.tenant.empty()) return ok();
  return Error{Errc::forbidden, "role_forbidden", "the token's role or tenant does not allow this"};
}

}  // namespace

void add_endpoints(net::Router& router, Backend& backend, net::Metrics& metrics, Clock& clock,
                   const net::TokenKey& key) {
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
  router.add(Method::get, "/v1/cluster/state", [&backend, &clock, &key](net::Request& request) -> Answer {
    if (Status may = admit(request, key, clock.wall()); !may) co_return Response::failure(may.error());
    auto state = co_await backend.state_text();
    if (!state) co_return Response::failure(state.error());
    co_return Response::text(*std::move(state), 200, "application/json");
  });
}

}  // namespace weir::cluster
