#include "weir/orchestrator/endpoints.hpp"

#include "weir/base/json.hpp"
#include "weir/base/log.hpp"

namespace weir::orchestrator {

namespace asio = boost::asio;
using net::Method;
using net::Request;
using net::Response;

namespace {
constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

// A destination's key is shown to those who may order streams.
stream::Credentials shown_to(const net::Claims& caller) {
  return caller.role == net::Role::admin ? stream::Credentials::shown : stream::Credentials::redacted;
}

std::string word(stream::Role role) { return std::string(json::write_value(role).as_string()); }
}  // namespace

Endpoints::Endpoints(Orchestrator& orchestrator, net::Metrics& metrics, Clock& clock, EndpointSettings settings)
    : orchestrator_(orchestrator), metrics_(metrics), clock_(clock), settings_(std::move(settings)),
      records_(orchestrator, settings_.records, settings_.home) {}

void Endpoints::count(bool ready, std::string_view outcome) {
  metrics_.counter("weir_orchestrator_hooks_total", "Hooks of MediaMTX, by what became of them.",
                   {{"event", ready ? "ready" : "not-ready"}, {"outcome", std::string(outcome)}}).add();
}

Status Endpoints::may_hook(const Request& request) const {
  if (settings_.hook_token.empty()) return ok();
  auto token = net::credential_of(request.header("authorization"), "Bearer");
  if (token && equal_constant_time(*token, settings_.hook_token.reveal())) return ok();
  return Error{Errc::unauthorized, "hook_token",
               "hooks need the token of hook_token_file: WEIR_HOOK_TOKEN_FILE names it for weir-hook"};
}

Result<net::Claims> Endpoints::admit(const Request& request, bool writes) const {
  if (!settings_.key) return Error{Errc::unauthorized, "token_missing", "this orchestrator knows no key for tokens"};
  auto token = net::credential_of(request.header("authorization"), "Bearer");
  if (!token) return Error{Errc::unauthorized, "token_missing", "this route needs a bearer token"};
  TRY(claims, settings_.key->verify(*token, clock_.wall()));
  bool allowed = claims.role == net::Role::admin || (!writes && claims.role == net::Role::viewer);
  if (allowed && claims.tenant.empty()) return std::move(claims);
  return Error{Errc::forbidden, "role_forbidden", "the token's role or tenant does not allow this"};
}

asio::awaitable<Response> Endpoints::hook(Request& request, bool ready) {
  std::string_view kind = ready ? "ready" : "not-ready";
  auto refuse = [&](const Error& why) {
    count(ready, "refused");
    log::warn("hook.refused", why.message).with("hook", kind).with("error_code", why.reason)
        .with("correlationId", request.request_id).with("remote", request.remote);
    return Response::failure(why);
  };
  if (Status may = may_hook(request); !may) co_return refuse(may.error());
  auto hook = stream::read_hook_text(request.body);
  if (!hook) co_return refuse(hook.error());
  count(ready, "accepted");
  log::info("hook.accepted", ready ? "MediaMTX says that a publisher came" : "MediaMTX says that a publisher went")
      .with("hook", kind).with("streamId", hook->stream).with("sourceId", hook->source.id).with("sourceType", hook->source.type).with("correlationId", request.request_id);
  orchestrator_.hear(*hook, ready);
  co_return Response::json(json::object{{"accepted", true},
                                        {"stream_id", hook->stream.str()},
                                        {"correlation_id", request.request_id}});
}

asio::awaitable<Response> Endpoints::list(Request& request) {
  auto caller = admit(request, false);
  if (!caller) co_return Response::failure(caller.error());
  auto found = co_await records_.list(shown_to(*caller));
  if (!found) co_return Response::failure(found.error());
  json::array items;
  for (json::object& view : *found) items.push_back(std::move(view));
  co_return Response::json(json::object{{"items", std::move(items)}, {"next_cursor", nullptr}});
}

asio::awaitable<Response> Endpoints::show(Request& request) {
  auto caller = admit(request, false);
  if (!caller) co_return Response::failure(caller.error());
  auto view = co_await records_.show(stream::StreamId::trusted(request.param("stream_id")), shown_to(*caller));
  co_return view ? Response::json(*view) : Response::failure(view.error());
}

asio::awaitable<Response> Endpoints::wish(Request& request) {
  if (auto may = admit(request, true); !may) co_return Response::failure(may.error());
  auto id = stream::read_stream_id(request.param("stream_id"));
  if (!id) co_return Response::failure(id.error());
  auto body = json::parse_text(request.body);
  if (!body) co_return Response::failure(body.error());
  if (!body->is_object())
    co_return Response::failure({Errc::invalid, "bad_field", "body must be an object", {{"field", "body"}}});
  auto shown = co_await records_.put(*id, std::move(body->get_object()));
  if (!shown) co_return Response::failure(shown.error());
  log::info("publication.wished", "an operator changed the wishes for this stream").with("streamId", *id)
      .with("correlationId", request.request_id);
  co_return Response::json(*shown);
}

asio::awaitable<Response> Endpoints::remove(Request& request) {
  if (auto may = admit(request, true); !may) co_return Response::failure(may.error());
  auto id = stream::StreamId::trusted(request.param("stream_id"));
  auto gone = co_await records_.remove(id);
  if (!gone) co_return Response::failure(gone.error());
  log::info("publication.removed", "an operator removed the wishes for this stream").with("streamId", id)
      .with("correlationId", request.request_id);
  co_return Response::json(json::object{{"stream_id", id.str()}, {"deleted", true}});
}

asio::awaitable<Response> Endpoints::order(Request& request, std::string what) {
  if (auto may = admit(request, true); !may) co_return Response::failure(may.error());
  StreamOrder given{.id = SubjectId::trusted(request.param("stream_id")), .what = what};
  if (orchestrator_.view(stream::StreamId::trusted(given.id.str())).empty())
    co_return Response::failure({Errc::not_found, "stream_not_found", "this orchestrator has no such stream"});
  if (what == "forward") {
    auto body = json::parse_text(request.body);
    const json::value* on = body && body->is_object() ? body->get_object().if_contains("on") : nullptr;
    if (on == nullptr || !(on->is_bool() || on->is_null()))
      co_return Response::failure({Errc::invalid, "bad_request", "on must be true, false or null", {{"field", "on"}}});
    if (on->is_bool()) given.forward = on->get_bool();
  }
  orchestrator_.order(given);
  co_return Response::json(json::object{{"stream_id", given.id.str()},
                                        {"order", what},
                                        {"holder", orchestrator_.owner().runner.str()}});
}

// Prometheus asks under the host name that it was configured with, and gets targets under the same name.
json::array Endpoints::discovered(const std::string& host) const {
  json::array out;
  auto target = [&](std::string path, json::object labels) {
    labels["__metrics_path__"] = std::move(path);
    labels["orchestrator_id"] = orchestrator_.owner().runner.str();
    out.push_back(json::object{{"targets", json::array{json::value(host)}}, {"labels", std::move(labels)}});
  };
  target("/metrics", {{"job", "weir-orchestrator"}});
  for (const auto& [id, role] : orchestrator_.measured())
    target(fmt::format("/streams/{}/{}/metrics", id, word(role)),
           {{"job", role == stream::Role::worker ? "weir-stream-worker" : "weir-egress"}, {"stream_id", id.str()}});
  return out;
}

void Endpoints::add_to(net::Router& router) {
  router.add(Method::post, "/v1/mediamtx/events/ready", [this](Request& r) { return hook(r, true); });
  router.add(Method::post, "/v1/mediamtx/events/not-ready", [this](Request& r) { return hook(r, false); });
  router.add(Method::get, "/v1/streams", [this](Request& r) { return list(r); });
  router.add(Method::get, "/v1/streams/{stream_id}", [this](Request& r) { return show(r); });
  router.add(Method::put, "/v1/streams/{stream_id}", [this](Request& r) { return wish(r); });
  router.add(Method::del, "/v1/streams/{stream_id}", [this](Request& r) { return remove(r); });
  for (const char* what : {"stop", "restart", "forward"})
    router.add(Method::post, fmt::format("/v1/streams/{{stream_id}}/{}", what),
               [this, what](Request& r) { return order(r, what); });
  router.add(Method::get, "/healthz", [](Request&) -> Answer { co_return Response::json(json::object{{"status", "ok"}}); });
  router.add(Method::get, "/readyz", [this](Request&) -> Answer {
    bool ready = orchestrator_.ready();
    json::object body{{"ready", ready}};
    if (!ready) body["reason"] = "the records of streams have not been read yet";
    co_return Response::json(body, ready ? 200 : 503);
  });
  router.add(Method::get, "/metrics", [this](Request&) -> Answer {
    co_return Response::text(metrics_.text(), 200, kMetricsType);
  });
  router.add(Method::get, "/sd/prometheus", [this](Request& r) -> Answer {
    co_return Response::text(json::to_text(discovered(std::string(r.header("host")))), 200, "application/json");
  });
  for (stream::Role role : {stream::Role::worker, stream::Role::forwarder})
    router.add(Method::get, fmt::format("/streams/{{stream_id}}/{}/metrics", word(role)), [this, role](Request& r) -> Answer {
      auto page = co_await orchestrator_.child_metrics(stream::StreamId::trusted(r.param("stream_id")), role);
      if (!page) co_return Response::failure(page.error());
      co_return Response::text(std::move(*page), 200, kMetricsType);
    });
}

}  // namespace weir::orchestrator
