// Camera keys: what `weir camera set` calls the fields of a camera: "max_fps", and "motion_gating.enabled" for a field
// of a field. Which there are, and what kind of value each takes, follows from the camera's configuration itself.
// Pure functions; any thread.
#pragma once

#include "weir/base/json.hpp"

#include <string>
#include <vector>

namespace weir::apps {

// Every key that can be set, in the configuration's order.
std::vector<std::string> camera_keys();

// Whether a word such as "motion_gating.enabled=false" can only be carried out knowing the field around it.
bool needs_present(const std::vector<std::string>& words);

// The body of a PATCH after which a camera that is `present` now is what the words KEY=VALUE say. `KEY=` puts a field's
// default back. A wrong use names the key and what is allowed; whether a value is within its bounds, the API says.
Result<json::object> camera_changes(const json::object& present, const std::vector<std::string>& words);

}  // namespace weir::apps
