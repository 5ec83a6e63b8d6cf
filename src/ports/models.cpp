#include "weir/ports/models.hpp"

#include "weir/ports/store_errors.hpp"

namespace weir {

Status may_put(const std::optional<TenantId>& present, TenantId& tenant, Put how, std::string_view what,
               std::string_view field) {
  if (how == Put::add) return present ? Status(exists_already(what, field)) : ok();
  if (!present || (!tenant.empty() && tenant != *present)) return no_such(what, field);
  tenant = *present;
  return ok();
}

Result<ModelId> next_model_id(ModelId highest) {
  if (highest < kModelIdMax) return highest + 1;
  return Error{Errc::unprocessable, "no_model_id", "the highest model_id is taken, so the next one must be given"};
}

}  // namespace weir
