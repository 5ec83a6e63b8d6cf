// Statements about the models of detector clusters, within the caller's transaction where they write. Private to this
// folder; throws SqliteFailure. One thread.
#pragma once

#include "db.hpp"

#include "weir/ports/models.hpp"

namespace weir::sqlite {

// The columns of a model, in the order in which `model_row` reads them.
#define WEIR_MODEL_COLUMNS                                                                                  \
  "m.model_id, m.tenant_id, m.name, m.file_name, m.file_sha256, m.file_bytes, m.metadata, m.created_at, " \
  "m.updated_at"
// `first` is the column of the model's id.
ModelRecord model_row(const Query& q, int first = 0);

// The tenant of the row with this id, if there is one; `sql` asks for it.
template <class AnyId>
std::optional<TenantId> tenant_in(Db& db, const char* sql, const AnyId& id) {
  Query q = db.query(sql);
  q << id;
  if (!q.next()) return std::nullopt;
  return q.id<TenantId>(0);
}
bool has_tenant(Db& db, const TenantId& id);
inline constexpr const char* kTenantOfModel = "SELECT tenant_id FROM models WHERE model_id = ?";

Result<ModelRecord> put_model(Db& db, WallTime clock, ModelRecord model, Put how);
std::vector<ModelRecord> list_models(Db& db, const TenantId& tenant, ModelId after, int limit);
Result<ModelRecord> show_model(Db& db, ModelId id, const TenantId& tenant);
Result<ModelRecord> set_model_file(Db& db, WallTime clock, ModelId id, const TenantId& tenant, const ModelFile& file);
Result<Nothing> remove_model(Db& db, ModelId id, const TenantId& tenant);

}  // namespace weir::sqlite
