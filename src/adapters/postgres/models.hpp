// Statements about the models of detector clusters on one session. Private to this folder; throws PgFailure.
#pragma once

#include "connection.hpp"

#include "weir/ports/models.hpp"

namespace weir::postgres {

// The columns of a model, in the order in which `model_row` reads them.
#define WEIR_MODEL_COLUMNS                                                                                 \
  "m.model_id, m.tenant_id, m.name, m.file_name, m.file_sha256, m.file_bytes, m.metadata, m.created_at," \
  " m.updated_at"
// `first` is the column of the model's id.
ModelRecord model_row(const Rows& r, int i, int first = 0);

// The tenant of the row with this id, if there is one; `sql` asks for it and locks the row.
template <class AnyId>
std::optional<TenantId> tenant_in(Connection& c, const char* sql, const AnyId& id) {
  Rows rows = c.query(sql, Params() << id);
  if (rows.size() == 0) return std::nullopt;
  return rows.id<TenantId>(0, 0);
}
bool has_tenant(Connection& c, const TenantId& id);
// For a row that will refer to the model.
inline constexpr const char* kTenantOfModel = "SELECT tenant_id FROM models WHERE model_id = $1::bigint FOR KEY SHARE";

Result<ModelRecord> put_model(Connection& c, ModelRecord model, Put how);
std::vector<ModelRecord> list_models(Connection& c, const TenantId& tenant, ModelId after, int limit);
Result<ModelRecord> show_model(Connection& c, ModelId id, const TenantId& tenant);
Result<ModelRecord> set_model_file(Connection& c, ModelId id, const TenantId& tenant, const ModelFile& file);
Result<Nothing> remove_model(Connection& c, ModelId id, const TenantId& tenant);

}  // namespace weir::postgres
