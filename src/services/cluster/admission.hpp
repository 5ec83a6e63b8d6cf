// Admission: which tokens a process of a cluster answers. It has no tenants of its own, so a token with a tenant is
// refused: it would see and change what belongs to others. Pure functions; any thread.
#pragma once

#include "weir/net/http.hpp"
#include "weir/net/token.hpp"

namespace weir::cluster {

enum class Access { read, change };

// Administrators and runners may do everything, viewers may read.
inline bool allows(net::Role role, Access access) {
  if (role == net::Role::viewer) return access == Access::read;
  return role == net::Role::admin || role == net::Role::runner;
}

inline Error role_forbidden() {
  return {Errc::forbidden, "role_forbidden", "the token's role or tenant does not allow this", {}};
}

inline Result<net::Claims> admit(const net::Request& request, const net::TokenKey& key, WallTime now, Access access) {
  auto token = net::credential_of(request.header("authorization"), "Bearer");
  if (!token) return Error{Errc::unauthorized, "token_missing", "this route needs a bearer token"};
  TRY(claims, key.verify(*token, now));
  if (!allows(claims.role, access) || !claims.tenant.empty()) return role_forbidden();
  return std::move(claims);
}

}  // namespace weir::cluster
