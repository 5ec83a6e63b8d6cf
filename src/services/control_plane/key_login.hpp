// KeyLogins: API keys that programs show as bearers where others show tokens.
//
// Such a request is a login of the key's role, subject and tenant that ends at kLoginLasts. What the store said of a key
// is believed for kKeyBelieved, counted from before it was asked, so that a program costs one look-up in that time;
// whatever a login began has ended kLoginLasts after its key was revoked. Loop thread only.
#pragma once

#include "access.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/secret.hpp"
#include "weir/ports/keys.hpp"

#include <unordered_map>

namespace weir::control_plane {

inline constexpr Duration kKeyBelieved = 5s, kLoginLasts = 10s;

// Every text is hashed and looked up the same way: neither the answer nor its time tells a malformed key from an
// unknown or a revoked one, and the time that the lookup of the hash takes says nothing about the secret.
Async<ApiKey> find_key(Keys& keys, const Secret& text);
// Whom the key's tokens name; they end where the caller says.
Result<Caller> caller_of(const ApiKey& key);

class KeyLogins {
 public:
  KeyLogins(Keys& keys, Clock& clock) : keys_(keys), clock_(clock) {}
  Async<Caller> log_in(Secret key);

 private:
  struct Known {
    Caller caller;
    Instant until;
  };
  static constexpr size_t kMax = 10'000;
  Keys& keys_;
  Clock& clock_;
  std::unordered_map<std::string, Known> known_;  // by the key's hash
};

}  // namespace weir::control_plane
