// Camera edits: from a request's body to a camera's new configuration.
//
// A replacement holds every field, a merge only those that change (null takes one back to its default); both are
// validated completely, and neither can move a camera: its id, tenant and site stay. Pure functions: the store may
// run them on a thread of its own.
#pragma once

#include "weir/base/json.hpp"
#include "weir/camera/config.hpp"
#include "weir/ports/cameras.hpp"

namespace weir::control_plane {

enum class EditKind { replace, merge };

// Checks form, relations and the installation's rules. Fields that answers hold besides the configuration are
// allowed, so that a client may send an answer back.
Result<camera::Config> read_camera(json::object body, const camera::Rules& rules);
Result<camera::Config> edit_camera(const CameraRecord& present, json::object body, EditKind kind,
                                   const camera::Rules& rules);

// Zones of one camera, by their ids.
enum class ZoneWrite { add, replace };
Result<camera::Config> with_zone(camera::Config config, camera::Zone zone, ZoneWrite write);
Result<camera::Config> without_zone(camera::Config config, std::int64_t zone_id);
const camera::Zone* find_zone(const camera::Config& config, std::int64_t zone_id);
Error no_such_zone();

}  // namespace weir::control_plane
