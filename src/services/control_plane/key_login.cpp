#include "key_login.hpp"

#include <algorithm>

namespace weir::control_plane {

Async<ApiKey> find_key(Keys& keys, const Secret& text) {
  std::string hashed = net::sha256_hex(text.reveal());
  auto key = co_await keys.find_key(std::move(hashed));
  if (key || key.error().code != Errc::not_found) co_return std::move(key);
  co_return Error{Errc::unauthorized, "key_invalid", "the API key is not valid"};
}

Result<Caller> caller_of(const ApiKey& key) {
  auto role = std::ranges::find(net::kRoleNames, std::string_view(key.role), &json::EnumName<net::Role>::name);
  if (role == net::kRoleNames.end()) return Error{Errc::internal, "bad_stored_key", "a stored key's role is unknown"};
  return Caller{.sub = key.sub, .role = role->value, .tenant = key.tenant, .key = key.id.str()};
}

Async<Caller> KeyLogins::log_in(Secret key) {
  std::string hashed = net::sha256_hex(key.reveal());
  Instant asked = clock_.now();
  auto known = known_.find(hashed);
  if (known != known_.end() && asked < known->second.until) co_return known->second.caller;
  WallTime ends = clock_.wall() + kLoginLasts;
  auto found = co_await find_key(keys_, key);
  if (!found) {
    known_.erase(hashed);
    co_return std::move(found).error();
  }
  CO_TRY(caller, caller_of(*found));
  caller.expires = ends;
  if (known_.size() >= kMax) known_.clear();
  known_.insert_or_assign(std::move(hashed), Known{caller, asked + kKeyBelieved});
  co_return std::move(caller);
}

}  // namespace weir::control_plane
