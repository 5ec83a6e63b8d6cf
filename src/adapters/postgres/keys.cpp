// API keys. A key of all tenants has none (NULL); the others refer to theirs, and are deleted with it.
#include "keys.hpp"

#include "weir/ports/store_errors.hpp"

namespace weir::postgres {

namespace {

#define WEIR_KEY_COLUMNS "key_id, name, role, sub, coalesce(tenant_id, ''), created_at, last_used_at"

WallTime wall(const Rows& r, int i, int column) { return WallTime(Duration(r.integer(i, column))); }

ApiKey key_row(const Rows& r, int i) {
  return {r.id<KeyId>(i, 0),    r.text(i, 1),  r.text(i, 2), r.text(i, 3),
          r.id<TenantId>(i, 4), wall(r, i, 5), wall(r, i, 6)};
}

}  // namespace

Result<ApiKey> add_key(Connection& c, const ApiKey& key, const std::string& secret_sha256) {
  Rows rows = c.query(
      "WITH t AS (SELECT tenant_id FROM tenants WHERE tenant_id = $5::text FOR KEY SHARE), added AS ("
      "INSERT INTO api_keys(key_id, name, role, sub, secret_sha256, tenant_id, created_at, last_used_at)"
      " SELECT $1::text, $2::text, $3::text, $4::text, $6::text, (SELECT tenant_id FROM t), weir_clock(), 0"
      " WHERE $5::text = '' OR EXISTS (SELECT 1 FROM t) ON CONFLICT DO NOTHING RETURNING " WEIR_KEY_COLUMNS
      ") SELECT added.*, $5::text = '' OR EXISTS (SELECT 1 FROM t) FROM (SELECT 1) always LEFT JOIN added ON true",
      Params() << key.id << key.name << key.role << key.sub << key.tenant << secret_sha256);
  if (!rows.flag(0, 7)) return no_such("tenant", "tenant_id");
  if (rows.is_null(0, 0)) return exists_already("key", "key_id");
  return key_row(rows, 0);
}

std::vector<ApiKey> list_keys(Connection& c, const TenantId& tenant, const KeyId& after, int limit) {
  Rows rows = c.query("SELECT " WEIR_KEY_COLUMNS
                      " FROM api_keys WHERE key_id > $1::text AND ($2::text = '' OR tenant_id = $2)"
                      " ORDER BY key_id LIMIT $3::int",
                      Params() << after << tenant << limit);
  std::vector<ApiKey> keys;
  for (int i = 0; i < rows.size(); ++i) keys.push_back(key_row(rows, i));
  return keys;
}

Result<Nothing> revoke_key(Connection& c, const KeyId& id, const TenantId& tenant) {
  Rows rows = c.query("DELETE FROM api_keys WHERE key_id = $1::text AND ($2::text = '' OR tenant_id = $2)",
                      Params() << id << tenant);
  if (rows.changed() == 0) return no_such("key", "key_id");
  return ok();
}

Result<ApiKey> find_key(Connection& c, const std::string& secret_sha256) {
  Rows rows = c.query("SELECT " WEIR_KEY_COLUMNS ", weir_clock() FROM api_keys WHERE secret_sha256 = $1::text",
                      Params() << secret_sha256);
  if (rows.size() == 0) return no_such("key", "key_id");
  ApiKey key = key_row(rows, 0);
  WallTime now = wall(rows, 0, 7);
  if (!worth_noting(key, now)) return key;
  key.last_used_at = now;
  c.query("UPDATE api_keys SET last_used_at = $2::bigint WHERE key_id = $1::text",
          Params() << key.id << now.time_since_epoch());
  return key;
}

}  // namespace weir::postgres
