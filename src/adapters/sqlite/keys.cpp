// API keys. A tenant's keys are deleted with it by a trigger of the schema.
#include "keys.hpp"

#include "weir/ports/store_errors.hpp"
#include "weir/sqlite/core.hpp"

namespace weir::sqlite {

namespace {
#define WEIR_KEY_COLUMNS "key_id, name, role, sub, tenant_id, created_at, last_used_at"

ApiKey key_row(const Query& q) {
  return {q.id<KeyId>(0), q.text(1), q.text(2), q.text(3), q.id<TenantId>(4), q.wall(5), q.wall(6)};
}
}  // namespace

Result<ApiKey> add_key(Db& db, WallTime now, ApiKey key, const std::string& secret_sha256) {
  key.created_at = now;
  key.last_used_at = {};
  if (!key.tenant.empty()) {
    Query q = db.query("SELECT 1 FROM tenants WHERE tenant_id = ?");
    q << key.tenant;
    if (!q.next()) return no_such("tenant", "tenant_id");
  }
  Query q = db.query("INSERT INTO api_keys(" WEIR_KEY_COLUMNS
                       ", secret_sha256) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING");
  q << key.id << key.name << key.role << key.sub << key.tenant << key.created_at << key.last_used_at << secret_sha256;
  if (q.run() == 0) return exists_already("key", "key_id");
  return key;
}

Result<Nothing> revoke_key(Db& db, const KeyId& id, const TenantId& tenant) {
  Query q = db.query("DELETE FROM api_keys WHERE key_id = ?1 AND (?2 = '' OR tenant_id = ?2)");
  q << id << tenant;
  if (q.run() == 0) return no_such("key", "key_id");
  return ok();
}

Result<ApiKey> find_key(Db& db, WallTime now, const std::string& secret_sha256) {
  ApiKey key;
  {
    Query q = db.query("SELECT " WEIR_KEY_COLUMNS " FROM api_keys WHERE secret_sha256 = ?");
    q << secret_sha256;
    if (!q.next()) return no_such("key", "key_id");
    key = key_row(q);
  }
  if (!worth_noting(key, now)) return key;
  key.last_used_at = now;
  Query q = db.query("UPDATE api_keys SET last_used_at = ? WHERE key_id = ?");
  q << now << key.id;
  q.run();
  return key;
}

std::vector<ApiKey> Core::Reader::list_keys(const TenantId& tenant, const KeyId& after, int limit) {
  Query q = db_->query("SELECT " WEIR_KEY_COLUMNS
                       " FROM api_keys WHERE key_id > ?1 AND (?2 = '' OR tenant_id = ?2) ORDER BY key_id LIMIT ?3");
  q << after << tenant << limit;
  std::vector<ApiKey> keys;
  while (q.next()) keys.push_back(key_row(q));
  return keys;
}

}  // namespace weir::sqlite
