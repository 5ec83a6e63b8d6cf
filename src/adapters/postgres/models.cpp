#include "models.hpp"

#include "weir/base/json.hpp"
#include "weir/ports/store_errors.hpp"
#include "weir/ports/streams.hpp"

namespace weir::postgres {

ModelRecord model_row(const Rows& r, int i, int first) {
  ModelRecord model{r.integer(i, first), r.id<TenantId>(i, first + 1), r.text(i, first + 2)};
  if (ModelFile file{r.text(i, first + 3), r.text(i, first + 4), r.integer(i, first + 5)}; !file.sha256.empty())
    model.file = std::move(file);
  model.metadata = read_object(r.view(i, first + 6));
  model.created_at = WallTime(Duration(r.integer(i, first + 7)));
  model.updated_at = WallTime(Duration(r.integer(i, first + 8)));
  return model;
}

bool has_tenant(Connection& c, const TenantId& id) {
  return tenant_in(c, "SELECT tenant_id FROM tenants WHERE tenant_id = $1::text FOR KEY SHARE", id).has_value();
}

namespace {
// Two that add a model at once must not get the same number.
Result<ModelId> next_id(Connection& c) {
  c.query("SELECT pg_advisory_xact_lock(8675309117)");
  return next_model_id(c.query("SELECT coalesce(max(model_id), 0) FROM models").integer(0, 0));
}
}  // namespace

Result<ModelRecord> put_model(Connection& c, ModelRecord model, Put how) {
  Transaction tx(c);
  auto present = tenant_in(c, "SELECT tenant_id FROM models WHERE model_id = $1::bigint FOR UPDATE", model.id);
  TRY(free, may_put(present, model.tenant, how, "model", "model_id"));
  if (!has_tenant(c, model.tenant)) return no_such("tenant", "tenant_id");
  if (model.id == 0) {
    TRY(next, next_id(c));
    model.id = next;
  }
  ModelFile file = model.file.value_or(ModelFile());
  Rows rows = c.query(
      "INSERT INTO models AS m SELECT $1::bigint, $2::text, $3::text, $4::text, $5::text, $6::bigint, $7::text, k, k"
      " FROM (SELECT weir_clock() AS k) t ON CONFLICT (model_id) DO UPDATE SET name = excluded.name,"
      " metadata = excluded.metadata, updated_at = excluded.updated_at WHERE $8::boolean RETURNING " WEIR_MODEL_COLUMNS,
      Params() << model.id << model.tenant << model.name << file.name << file.sha256 << file.bytes
               << json::to_text(model.metadata) << (how == Put::replace));
  if (rows.size() == 0) return exists_already("model", "model_id");
  tx.commit();
  return model_row(rows, 0);
}

std::vector<ModelRecord> list_models(Connection& c, const TenantId& tenant, ModelId after, int limit) {
  Rows rows = c.query("SELECT " WEIR_MODEL_COLUMNS
                      " FROM models m WHERE m.model_id > $1::bigint AND ($2::text = '' OR m.tenant_id = $2)"
                      " ORDER BY m.model_id LIMIT $3::int",
                      Params() << after << tenant << limit);
  std::vector<ModelRecord> models;
  for (int i = 0; i < rows.size(); ++i) models.push_back(model_row(rows, i));
  return models;
}

Result<ModelRecord> show_model(Connection& c, ModelId id, const TenantId& tenant) {
  Rows rows = c.query("SELECT " WEIR_MODEL_COLUMNS
                      " FROM models m WHERE m.model_id = $1::bigint AND ($2::text = '' OR m.tenant_id = $2)",
                      Params() << id << tenant);
  if (rows.size() == 0) return no_such("model", "model_id");
  return model_row(rows, 0);
}

Result<ModelRecord> set_model_file(Connection& c, ModelId id, const TenantId& tenant, const ModelFile& file) {
  Rows rows = c.query("UPDATE models AS m SET file_name = $3::text, file_sha256 = $4::text, file_bytes = $5::bigint,"
                      " updated_at = weir_clock() WHERE m.model_id = $1::bigint AND ($2::text = '' OR m.tenant_id = $2)"
                      " RETURNING " WEIR_MODEL_COLUMNS,
                      Params() << id << tenant << file.name << file.sha256 << file.bytes);
  if (rows.size() == 0) return no_such("model", "model_id");
  return model_row(rows, 0);
}

// The row is locked first: nobody can name the model between the look at who does and its end.
Result<Nothing> remove_model(Connection& c, ModelId id, const TenantId& tenant) {
  Transaction tx(c);
  Rows present = c.query(
      "SELECT 1 FROM models WHERE model_id = $1::bigint AND ($2::text = '' OR tenant_id = $2) FOR UPDATE",
      Params() << id << tenant);
  if (present.size() == 0) return no_such("model", "model_id");
  Rows user = c.query(
      "SELECT 'playlist ' || playlist_id FROM playlists WHERE model_id = $1::bigint UNION ALL"
      " SELECT 'subscription ' || subscription_identifier FROM subscriptions WHERE model_id = $1 LIMIT 1",
      Params() << id);
  if (user.size() > 0) return in_use("model", user.view(0, 0));
  c.query("DELETE FROM models WHERE model_id = $1::bigint", Params() << id);
  tx.commit();
  return ok();
}

}  // namespace weir::postgres
