#include "weir/lease/row.hpp"

namespace weir::lease {

std::string_view to_string(Kind kind) {
  for (const auto& [each, name] : kKindNames)
    if (each == kind) return name;
  WEIR_ASSERT(false);
}

std::string_view id_field(Kind kind) { return kind == Kind::camera ? CameraId::field_name : "stream_id"; }

Kind kind_of(std::string_view word) {
  for (const auto& [kind, name] : kKindNames)
    if (name == word) return kind;
  return Kind::camera;
}

}  // namespace weir::lease
