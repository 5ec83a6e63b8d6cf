// The bodies of the routes for API keys and tokens, and what a credential buys. Plain values and pure functions.
#pragma once

#include "weir/base/json.hpp"
#include "weir/net/token.hpp"
#include "weir/ports/keys.hpp"

namespace weir::control_plane {

// A new key, without what only the control plane can give it: id and secret.
Result<ApiKey> read_key(const json::value& body);
json::object write_key(const ApiKey& key);

struct TokenAsk {
  Secret api_key = {};                 // empty: the credential stands in the header
  std::optional<net::Role> role = {};  // absent: the credential's own
  BootId boot = {};
  std::optional<std::int64_t> ttl_seconds = {};
};
Result<TokenAsk> read_token_ask(const json::value& body);

// What a client shows to get a token: an API key, or a token that is still valid.
struct Credential {
  enum class Kind { key, token };
  Kind kind;
  net::Claims claims;  // of the token, or those that the key stands for
};

// A key buys tokens of its own role. A runner, by key or token, also buys those of its workers, each for one boot;
// and with a token that no key bought, its own next one. No token outlasts the revocation of a key by more than its
// own time: a token that is bought with a token that a key bought ends when that one ends.
Result<net::Claims> buy(const Credential& credential, const TokenAsk& ask, Duration ttl, WallTime now);
json::object write_token(const net::Claims& claims, const Secret& token, WallTime now);

}  // namespace weir::control_plane
