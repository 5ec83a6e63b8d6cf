// Models: the models that detector clusters give to their workers, each under a number.
//
// The number is what the workers' protocol calls `modelId`. A store knows what a model is called, what its file is
// where one was stored, and whatever else its owner wrote beside it. The models that runners have on their own machines
// are something else (model_labels.hpp). A model belongs to a tenant, and playlists and subscriptions of that tenant
// name it; while one does, it is not removed. Tenant-scoped callers pass their tenant; an empty one means all. Loop
// thread only; the plain functions: any thread.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/time.hpp"
#include "weir/ports/async.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

using ModelId = std::int64_t;  // 0: none
inline constexpr ModelId kModelIdMax = 2147483647;

struct ModelFile {
  std::string name;
  std::string sha256;  // in lower-case hex
  std::int64_t bytes = 0;
  friend bool operator==(const ModelFile&, const ModelFile&) = default;
};

struct ModelRecord {
  ModelId id = 0;
  TenantId tenant = {};
  std::string name = {};
  std::optional<ModelFile> file = {};
  boost::json::object metadata = {};
  WallTime created_at{};
  WallTime updated_at{};
};

// What a write asks for: a new row, or another content for one that is there.
enum class Put { add, replace };
// Whether a row may be put where `present` is the tenant of the one that is there, if any. A row that is replaced stays
// its tenant's: an empty `tenant` becomes that tenant.
Status may_put(const std::optional<TenantId>& present, TenantId& tenant, Put how, std::string_view what,
               std::string_view field);
// The number for a model that is added without one, where `highest` is the highest that is taken.
Result<ModelId> next_model_id(ModelId highest);

class Models {
 public:
  virtual ~Models() = default;

  // A new model without an id gets the next number above all there are. One that is replaced keeps its file.
  virtual Async<ModelRecord> put_model(ModelRecord model, Put how) = 0;
  virtual Async<std::vector<ModelRecord>> list_models(TenantId tenant, ModelId after, int limit) = 0;
  virtual Async<ModelRecord> show_model(ModelId id, TenantId tenant) = 0;
  virtual Async<Nothing> remove_model(ModelId id, TenantId tenant) = 0;  // only one that nothing names
  // Gives the model another file; everything else of it stays.
  virtual Async<ModelRecord> set_model_file(ModelId id, TenantId tenant, ModelFile file) = 0;
};

}  // namespace weir
