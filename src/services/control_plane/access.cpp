#include "access.hpp"

#include "weir/base/log.hpp"

namespace weir::control_plane {

Status speaks_for(const Caller& caller, const RunnerId& runner) {
  bool bound = caller.role == net::Role::runner || caller.role == net::Role::worker;
  if (!bound || caller.sub == runner.str()) return ok();
  return Error{Errc::forbidden, "not_yours", "this token speaks for another runner", {{"field", "runner_id"}}};
}

Result<TenantId> tenant_for(const Caller& caller, const TenantId& wanted) {
  if (caller.tenant.empty() || wanted == caller.tenant) return wanted;
  if (wanted.empty()) return caller.tenant;
  return Error{Errc::not_found, "tenant_not_found", "there is no such tenant", {{"field", "tenant_id"}}};
}

Status sees_all(const Caller& caller) {
  if (caller.tenant.empty()) return ok();
  return Error{Errc::forbidden, "tenant_token", "this needs a token that is not bound to a tenant"};
}

bool sees_credentials(const Caller& caller) {
  return caller.role == net::Role::admin || caller.role == net::Role::runner;
}

Error role_forbidden() { return {Errc::forbidden, "role_forbidden", "the token's role does not allow this"}; }

Result<Caller> Gate::admit(const net::Request& request, Roles roles) const {
  std::string_view header = request.header("authorization");
  if (header.empty()) return Error{Errc::unauthorized, "token_missing", "this route needs a bearer token"};
  auto token = credential_of(header, "Bearer");
  if (!token) return Error{Errc::unauthorized, "token_invalid", "the Authorization header must be: Bearer <token>"};
  TRY(claims, key_.verify(*token, clock_.wall()));
  if (!roles.has(claims.role)) return role_forbidden();
  return std::move(claims);
}

void Gate::report(const net::Request& request, const Error& error) {
  if (error.code != Errc::unauthorized && error.code != Errc::forbidden) return;
  auto left_out = reports_.due(clock_.now());
  if (!left_out) return;
  log::warn("auth.refused", error.message)
      .with("error_code", error.reason)
      .with("method", net::to_string(request.method))
      .with("remote", request.remote)
      .with("request_id", request.request_id)
      .with("left_out", *left_out);
}

}  // namespace weir::control_plane
