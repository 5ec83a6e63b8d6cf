#include "key_bodies.hpp"
#include "page.hpp"
#include "plane.hpp"
#include "request.hpp"

#include "weir/base/log.hpp"
#include "weir/base/random.hpp"

namespace weir::control_plane {

using net::Method;

namespace {

constexpr size_t kIdBytes = 8, kSecretBytes = 32;

net::Response with_secret(const json::object& body, int status) {
  net::Response response = net::Response::json(body, status);
  response.headers.emplace_back("Cache-Control", "no-store");
  return response;
}

// ---- keys ----

Reply add_key(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(body, body_value(request));
  CO_TRY(key, read_key(body));
  CO_TRY(tenant, tenant_for(caller, key.tenant));
  key.tenant = tenant;
  key.id = KeyId::trusted(random_hex(kIdBytes));
  Secret text(fmt::format("{}{}_{}", kKeyPrefix, key.id, random_hex(kSecretBytes)));
  std::string hashed = net::sha256_hex(text.reveal());
  CO_TRY(added, co_await plane.keys.add_key(std::move(key), std::move(hashed)));
  log::info("key.created")
      .with("key_id", added.id)
      .with("role", added.role)
      .with("sub", added.sub)
      .with("tenant_id", added.tenant)
      .with("by", caller.sub)
      .with("request_id", request.request_id);
  json::object out = write_key(added);
  out["api_key"] = text.reveal();
  co_return with_secret(out, 201);
}

Reply list_keys(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(page, read_page(request));
  TenantId tenant = caller.tenant;
  CO_TRY(found, co_await plane.keys.list_keys(std::move(tenant), KeyId::trusted(page.after), page.ask()));
  co_return net::Response::json(listed(
      found, page, [](const ApiKey& key) { return key.id.str(); }, write_key));
}

Reply revoke_key(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(id, path_id<KeyId>(request));
  KeyId doomed = id;
  TenantId tenant = caller.tenant;
  CO_TRY(gone, co_await plane.keys.revoke_key(std::move(doomed), std::move(tenant)));
  log::info("key.revoked").with("key_id", id).with("by", caller.sub).with("request_id", request.request_id);
  co_return net::Response::json(json::object{{"key_id", id.str()}, {"revoked", true}});
}

// ---- tokens ----

Async<Credential> credential_of_key(Plane& plane, const Secret& text) {
  CO_TRY(key, co_await find_key(plane.keys, text));
  CO_TRY(claims, caller_of(key));
  co_return Credential{Credential::Kind::key, std::move(claims)};
}

Async<Credential> credential_in(Plane& plane, const net::Request& request, const Secret& in_body) {
  std::string_view header = request.header("authorization");
  if (!in_body.empty() && !header.empty())
    co_return bad_field("api_key", "must not be given beside an Authorization header");
  if (!in_body.empty()) co_return co_await credential_of_key(plane, in_body);
  auto bearer = credential_of(header, "Bearer");
  if (bearer && bearer->starts_with(kKeyPrefix)) {
    Secret text{std::string(*bearer)};
    co_return co_await credential_of_key(plane, text);
  }
  CO_TRY(claims, plane.gate.admit(request, kEverybody));
  co_return Credential{Credential::Kind::token, std::move(claims)};
}

Reply give_token(Plane& plane, net::Request& request) {
  CO_TRY(body, request.body.empty() ? Result<json::value>(json::value(json::object())) : body_value(request));
  CO_TRY(ask, read_token_ask(body));
  CO_TRY(credential, co_await credential_in(plane, request, ask.api_key));
  Duration ttl = ask.ttl_seconds ? Duration(std::chrono::seconds(*ask.ttl_seconds)) : plane.settings.token_ttl;
  WallTime now = plane.clock.wall();
  CO_TRY(claims, buy(credential, ask, ttl, now));
  log::debug("token.issued")
      .with("role", net::kRoleNames[static_cast<size_t>(claims.role)].name)
      .with("sub", claims.sub)
      .with("key_id", claims.key)
      .with("boot_id", claims.boot)
      .with("request_id", request.request_id);
  co_return with_secret(write_token(claims, plane.gate.sign(claims), now), 200);
}

}  // namespace

void add_auth_routes(net::Router& router, Plane& plane) {
  add_guarded(router, plane, Method::post, "/v1/api-keys", kAdmins, add_key);
  add_guarded(router, plane, Method::get, "/v1/api-keys", kAdmins, list_keys);
  add_guarded(router, plane, Method::del, "/v1/api-keys/{key_id}", kAdmins, revoke_key);
  add_open(router, plane, Method::post, "/v1/auth/token", give_token);
}

}  // namespace weir::control_plane
