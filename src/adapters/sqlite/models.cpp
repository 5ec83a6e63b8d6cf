#include "models.hpp"

#include "weir/base/json.hpp"
#include "weir/ports/store_errors.hpp"
#include "weir/ports/streams.hpp"

namespace weir::sqlite {

ModelRecord model_row(const Query& q, int first) {
  ModelRecord model{q.integer(first), q.id<TenantId>(first + 1), q.text(first + 2)};
  if (ModelFile file{q.text(first + 3), q.text(first + 4), q.integer(first + 5)}; !file.sha256.empty())
    model.file = std::move(file);
  model.metadata = read_object(q.text(first + 6));
  model.created_at = q.wall(first + 7);
  model.updated_at = q.wall(first + 8);
  return model;
}

bool has_tenant(Db& db, const TenantId& id) {
  return tenant_in(db, "SELECT tenant_id FROM tenants WHERE tenant_id = ?", id).has_value();
}

namespace {
Result<ModelId> next_id(Db& db) {
  Query q = db.query("SELECT coalesce(max(model_id), 0) FROM models");
  q.next();
  return next_model_id(q.integer(0));
}
}  // namespace

Result<ModelRecord> put_model(Db& db, WallTime clock, ModelRecord model, Put how) {
  TRY(free, may_put(tenant_in(db, kTenantOfModel, model.id), model.tenant, how, "model", "model_id"));
  if (!has_tenant(db, model.tenant)) return no_such("tenant", "tenant_id");
  if (model.id == 0) {
    TRY(next, next_id(db));
    model.id = next;
  }
  ModelFile file = model.file.value_or(ModelFile());
  Query q = db.query(
      "INSERT INTO models VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8) ON CONFLICT (model_id) DO UPDATE SET "
      "name = ?3, metadata = ?7, updated_at = ?8");
  q << model.id << model.tenant << model.name << file.name << file.sha256 << file.bytes
    << json::to_text(model.metadata) << clock;
  q.run();
  return show_model(db, model.id, {});
}

std::vector<ModelRecord> list_models(Db& db, const TenantId& tenant, ModelId after, int limit) {
  Query q = db.query("SELECT " WEIR_MODEL_COLUMNS
                     " FROM models m WHERE m.model_id > ?1 AND (?2 = '' OR m.tenant_id = ?2) ORDER BY m.model_id "
                     "LIMIT ?3");
  q << after << tenant << limit;
  std::vector<ModelRecord> models;
  while (q.next()) models.push_back(model_row(q));
  return models;
}

Result<ModelRecord> show_model(Db& db, ModelId id, const TenantId& tenant) {
  Query q = db.query("SELECT " WEIR_MODEL_COLUMNS
                     " FROM models m WHERE m.model_id = ?1 AND (?2 = '' OR m.tenant_id = ?2)");
  q << id << tenant;
  if (!q.next()) return no_such("model", "model_id");
  return model_row(q);
}

Result<ModelRecord> set_model_file(Db& db, WallTime clock, ModelId id, const TenantId& tenant, const ModelFile& file) {
  Query q = db.query(
      "UPDATE models SET file_name = ?3, file_sha256 = ?4, file_bytes = ?5, updated_at = ?6 "
      "WHERE model_id = ?1 AND (?2 = '' OR tenant_id = ?2)");
  q << id << tenant << file.name << file.sha256 << file.bytes << clock;
  q.run();
  return show_model(db, id, tenant);
}

Result<Nothing> remove_model(Db& db, ModelId id, const TenantId& tenant) {
  TRY(present, show_model(db, id, tenant));
  {
    Query q = db.query(
        "SELECT 'playlist ' || playlist_id FROM playlists WHERE model_id = ?1 UNION ALL "
        "SELECT 'subscription ' || subscription_identifier FROM subscriptions WHERE model_id = ?1 LIMIT 1");
    q << id;
    if (q.next()) return in_use("model", q.text(0));
  }
  Query q = db.query("DELETE FROM models WHERE model_id = ?");
  q << id;
  q.run();
  return ok();
}

}  // namespace weir::sqlite
