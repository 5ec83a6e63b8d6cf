// Tokens: HS256 JWTs that say who asks, and nothing else.
//
// The key decides the algorithm, never the token: anything but HS256 is refused before its signature is looked at.
// `iss` and `aud` must be the string "weir", `exp` an integer in the future, `role` a known role. Signatures are
// compared in constant time. A TokenKey is constant after creation and shared freely.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/json.hpp"
#include "weir/base/secret.hpp"
#include "weir/base/time.hpp"

#include <array>

namespace weir::net {

enum class Role { admin, runner, worker, viewer };
inline constexpr std::array<json::EnumName<Role>, 4> kRoleNames = {
    {{Role::admin, "admin"}, {Role::runner, "runner"}, {Role::worker, "worker"}, {Role::viewer, "viewer"}}};
constexpr auto& enum_names(Role) { return kRoleNames; }

struct Claims {
  std::string sub;
  Role role = Role::viewer;
  TenantId tenant = {};  // empty: all tenants
  BootId boot = {};      // worker tokens: the boot they were minted for
  WallTime expires = {};
  std::string key = {};  // the id of the API key that bought it: such a token is renewed with the key only
  friend bool operator==(const Claims&, const Claims&) = default;
};

class TokenKey {
 public:
  // At least 32 bytes.
  static Result<TokenKey> create(Secret key);
  // Reads the key; creates the file with a random one and mode 0600 when it is absent. Refuses a file that others
  // may read. Two processes that start at once end up with the same key.
  static Result<TokenKey> load_or_create(const std::string& path);

  Secret sign(const Claims& claims) const;
  // The error's reason is "token_expired", "token_invalid" ...; its text never repeats the token.
  Result<Claims> verify(std::string_view token, WallTime now) const;

  // Signs a text that is no token, in base64url. Each purpose has a key of its own, made from this one: no token passes
  // for such a signature, no such signature for a token, and none for another purpose.
  std::string sign_for(std::string_view purpose, std::string_view text) const;
  bool is_signed_for(std::string_view purpose, std::string_view text, std::string_view signature) const;

 private:
  explicit TokenKey(Secret key) : key_(std::move(key)) {}
  Secret key_;
};

// "Bearer x" → "x"; the scheme in any case; nothing when the header is absent or of another scheme.
std::optional<std::string_view> credential_of(std::string_view authorization, std::string_view scheme);

std::string base64url(std::string_view bytes);
std::optional<std::string> from_base64url(std::string_view text);
std::string sha256_hex(std::string_view bytes);

}  // namespace weir::net
