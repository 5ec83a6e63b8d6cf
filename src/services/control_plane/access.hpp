// Access: who asks, and what they may.
//
// A token names a role, a subject and perhaps a tenant. The role decides which routes answer (`Roles`); a runner or a
// worker acts only for its own subject; a token with a tenant sees nothing of any other tenant, not even that it
// exists. The rules are plain functions. The Gate applies them to requests and reports refusals without flooding the
// log. Loop thread only.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/base/log_limit.hpp"
#include "weir/net/http.hpp"
#include "weir/net/token.hpp"

#include <initializer_list>

namespace weir::control_plane {

using Caller = net::Claims;

class Roles {
 public:
  constexpr Roles(std::initializer_list<net::Role> roles) {
    for (net::Role role : roles) bits_ |= 1u << static_cast<unsigned>(role);
  }
  constexpr bool has(net::Role role) const { return (bits_ >> static_cast<unsigned>(role) & 1u) != 0; }

 private:
  unsigned bits_ = 0;
};
inline constexpr Roles kAdmins = {net::Role::admin};
inline constexpr Roles kReaders = {net::Role::admin, net::Role::viewer};
inline constexpr Roles kReadersAndRunners = {net::Role::admin, net::Role::viewer, net::Role::runner};
inline constexpr Roles kRunners = {net::Role::admin, net::Role::runner};
inline constexpr Roles kEverybody = {net::Role::admin, net::Role::viewer, net::Role::runner, net::Role::worker};

using net::credential_of;

// Whether the caller may act as this runner, or see what belongs to it. An administrator and a reader always may.
Status speaks_for(const Caller& caller, const RunnerId& runner);
// The tenant to work in: the wanted one, or the caller's where none is named. For a caller with a tenant, every other
// tenant does not exist.
Result<TenantId> tenant_for(const Caller& caller, const TenantId& wanted);
// A token with a tenant must not change what belongs to all.
Status sees_all(const Caller& caller);
bool sees_credentials(const Caller& caller);

Error role_forbidden();

// What API keys begin with, so that they are told from tokens and found by scanners of secrets.
inline constexpr std::string_view kKeyPrefix = "wk_";

class Gate {
 public:
  Gate(net::TokenKey key, Clock& clock) : key_(std::move(key)), clock_(clock) {}
  Result<Caller> admit(const net::Request& request, Roles roles) const;
  Secret sign(const net::Claims& claims) const { return key_.sign(claims); }
  const net::TokenKey& key() const { return key_; }
  // Logs a 401 or 403, at most one a second; the next line says how many were left out.
  void report(const net::Request& request, const Error& error);

 private:
  const net::TokenKey key_;
  Clock& clock_;
  LogLimit reports_{1s};
};

}  // namespace weir::control_plane
