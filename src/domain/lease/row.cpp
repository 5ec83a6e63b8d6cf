#include "weir/lease/row.hpp"

namespace weir::lease {

std::string_view to_string(Kind kind) {
  for (const auto& [each, name] : kKindNames)
    if (each == kind) return name;
  WEIR_ASSERT(false);
}

std::string_view id_field(Kind kind) {
  switch (kind) {
    case Kind::camera: return CameraId::field_name;
    case Kind::stream: return "stream_id";
    case Kind::cluster: return "cluster";
  }
  WEIR_ASSERT(false);
}

Kind kind_of(std::string_view word) {
  for (const auto& [kind, name] : kKindNames)
    if (name == word) return kind;
  return Kind::camera;
}

}  // namespace weir::lease
