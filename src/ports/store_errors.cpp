#include "weir/ports/store_errors.hpp"

#include <fmt/format.h>

namespace weir {

Error no_such(std::string_view what, std::string_view field) {
  return {Errc::not_found, fmt::format("{}_not_found", what), fmt::format("there is no such {}", what),
          {{"field", field}}};
}

Error exists_already(std::string_view what, std::string_view field) {
  return {Errc::conflict, fmt::format("{}_exists", what), fmt::format("this {} is taken", field), {{"field", field}}};
}

Error not_empty(std::string_view what, std::string_view because) {
  return {Errc::unprocessable, fmt::format("{}_not_empty", what), fmt::format("the {} still has {}", what, because)};
}

Error in_use(std::string_view what, std::string_view by) {
  return {Errc::conflict, fmt::format("{}_in_use", what),
          fmt::format("the {} is still named by {}, which must be changed or removed first", what, by)};
}

}  // namespace weir
