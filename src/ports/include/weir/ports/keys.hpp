// Keys: the API keys of an installation: long-lived secrets that buy short-lived tokens.
//
// A store keeps a key's SHA-256 and never the key itself, so that a person who reads the store cannot ask for tokens. A
// revoked key is forgotten, and the keys of a tenant go with the tenant. Tenant-scoped callers pass their tenant; an
// empty one means all. Loop thread only.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/time.hpp"
#include "weir/ports/async.hpp"

#include <string>
#include <vector>

namespace weir {

struct KeyTag {
  static constexpr std::string_view name = "key_id";
};
using KeyId = Id<KeyTag>;

struct ApiKey {
  KeyId id;
  std::string name = {};    // what people call it
  std::string role;         // of the tokens it buys, as tokens spell it
  std::string sub;          // whom they name
  TenantId tenant = {};     // empty: all
  WallTime created_at{};    // the store's clock
  WallTime last_used_at{};  // to within kUseNoted; the epoch: never
};

inline constexpr Duration kUseNoted = 60s;
// Whether a use at `now` is worth a write to the store; also true where the clock was set back.
inline bool worth_noting(const ApiKey& key, WallTime now) {
  return now < key.last_used_at || now - key.last_used_at >= kUseNoted;
}

class Keys {
 public:
  virtual ~Keys() = default;

  virtual Async<ApiKey> add_key(ApiKey key, std::string secret_sha256) = 0;
  virtual Async<std::vector<ApiKey>> list_keys(TenantId tenant, KeyId after, int limit) = 0;
  virtual Async<Nothing> revoke_key(KeyId id, TenantId tenant) = 0;
  // The key with this hash; notes that it was used. An unknown and a revoked key are both `not_found`.
  virtual Async<ApiKey> find_key(std::string secret_sha256) = 0;
};

}  // namespace weir
