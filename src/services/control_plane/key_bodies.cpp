#include "key_bodies.hpp"

#include "request.hpp"

#include <algorithm>

namespace weir::control_plane {

using net::Role;

namespace {

constexpr std::int64_t kTtlMin = 10, kTtlMax = 3600;

std::string sub_problem(const std::string& sub) { return std::string(id_problem(sub)); }

}  // namespace

struct KeyBody {
  ApiKey key;
  Role role = Role::viewer;
};
template <class V>
void fields(V& v, KeyBody& b) {
  v.optional("name", b.key.name, name_problem);
  v.required("role", b.role);
  v.required("sub", b.key.sub, sub_problem);
  v.optional("tenant_id", b.key.tenant);
}

template <class V>
void fields(V& v, TokenAsk& a) {
  v.optional("api_key", a.api_key);
  v.optional("role", a.role);
  v.optional("boot_id", a.boot);
  v.optional("ttl_seconds", a.ttl_seconds, json::range(kTtlMin, kTtlMax));
}

Result<ApiKey> read_key(const json::value& body) {
  TRY(given, json::read<KeyBody>(body, json::Unknown::reject));
  given.key.role = json::write_value(given.role).as_string();
  return std::move(given.key);
}

json::object write_key(const ApiKey& key) {
  json::object out{{"key_id", key.id.str()}, {"name", key.name}, {"role", key.role}, {"sub", key.sub}};
  if (!key.tenant.empty()) out["tenant_id"] = key.tenant.str();
  out["created_at"] = to_iso(key.created_at);
  out["last_used_at"] = key.last_used_at == WallTime{} ? json::value(nullptr) : json::value(to_iso(key.last_used_at));
  return out;
}

Result<TokenAsk> read_token_ask(const json::value& body) { return json::read<TokenAsk>(body, json::Unknown::reject); }

Result<net::Claims> buy(const Credential& credential, const TokenAsk& ask, Duration ttl, WallTime now) {
  const net::Claims& given = credential.claims;
  bool by_token = credential.kind == Credential::Kind::token;
  Role wanted = ask.role.value_or(given.role);
  bool next = wanted == given.role && (!by_token || given.role == Role::runner);
  bool for_worker = wanted == Role::worker && given.role == Role::runner;
  if (!next && !for_worker)
    return Error{Errc::forbidden, "role_forbidden", "this credential does not buy tokens of that role"};
  if (for_worker && ask.boot.empty()) return bad_field("boot_id", "is required for a worker's token");
  if (wanted != Role::worker && !ask.boot.empty()) return bad_field("boot_id", "is for a worker's token only");
  bool bought = by_token && !given.key.empty();
  if (next && bought)
    return Error{Errc::forbidden, "key_needed", "this token was bought with an API key: show the key for the next one"};
  net::Claims claims = given;
  claims.role = wanted;
  claims.boot = ask.boot;
  // Tokens end at whole seconds; rounded up, none ends before the time that is told.
  claims.expires = std::chrono::ceil<std::chrono::seconds>(now + ttl);
  if (bought) claims.expires = std::min(claims.expires, given.expires);
  return claims;
}

json::object write_token(const net::Claims& claims, const Secret& token, WallTime now) {
  json::object out{{"token", token.reveal()},
                   {"token_type", "Bearer"},
                   {"expires_in", std::chrono::floor<std::chrono::seconds>(claims.expires - now).count()},
                   {"role", json::write_value(claims.role)},
                   {"sub", claims.sub}};
  if (!claims.tenant.empty()) out["tenant_id"] = claims.tenant.str();
  if (!claims.boot.empty()) out["boot_id"] = claims.boot.str();
  return out;
}

}  // namespace weir::control_plane
