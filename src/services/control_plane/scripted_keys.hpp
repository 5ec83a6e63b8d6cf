// ScriptedKeys: the keys of a store for tests of the routes, in memory, which can be away. Loop thread only.
#pragma once

#include "weir/ports/catalog.hpp"
#include "weir/ports/keys.hpp"

#include <map>

namespace weir::control_plane {

class ScriptedKeys final : public Keys {
 public:
  bool up = false;
  std::map<std::string, ApiKey> by_hash;

  Async<ApiKey> add_key(ApiKey key, std::string secret_sha256) override {
    if (!up) co_return away();
    co_return by_hash[secret_sha256] = key;
  }
  Async<std::vector<ApiKey>> list_keys(TenantId tenant, KeyId after, int limit) override {
    if (!up) co_return away();
    std::map<KeyId, ApiKey> sorted;
    for (const auto& [hash, key] : by_hash)
      if (key.id > after && sees(tenant, key)) sorted[key.id] = key;
    std::vector<ApiKey> found;
    for (const auto& [id, key] : sorted)
      if (static_cast<int>(found.size()) < limit) found.push_back(key);
    co_return std::move(found);
  }
  Async<Nothing> revoke_key(KeyId id, TenantId tenant) override {
    if (!up) co_return away();
    auto gone = std::erase_if(by_hash, [&](const auto& e) { return e.second.id == id && sees(tenant, e.second); });
    if (gone == 0) co_return no_such("key", "key_id");
    co_return ok();
  }
  Async<ApiKey> find_key(std::string secret_sha256) override {
    if (!up) co_return away();
    auto at = by_hash.find(secret_sha256);
    if (at == by_hash.end()) co_return no_such("key", "key_id");
    co_return at->second;
  }

 private:
  static Error away() { return {Errc::unavailable, "store_unavailable", "canary: no answer from db.example"}; }
  static bool sees(const TenantId& tenant, const ApiKey& key) { return tenant.empty() || key.tenant == tenant; }
};

}  // namespace weir::control_plane
