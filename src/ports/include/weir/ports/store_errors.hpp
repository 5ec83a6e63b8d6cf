// The errors that every store reports in the same words, so that no caller can tell which store answered.
// Plain functions; any thread.
#pragma once

#include "weir/base/result.hpp"

#include <string_view>

namespace weir {

Error no_such(std::string_view what, std::string_view field);         // "camera" → camera_not_found
Error exists_already(std::string_view what, std::string_view field);  // "camera" → camera_exists
Error not_empty(std::string_view what, std::string_view because);     // "site" → site_not_empty
Error in_use(std::string_view what, std::string_view by);             // "model" → model_in_use

}  // namespace weir
