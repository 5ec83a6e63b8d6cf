// Importing cameras: makes a control plane hold what a file says, one camera after the other.
//
// An address without its credentials, as an export leaves them out, stands for the one that the control plane has: an
// update keeps that one, if it is the same but for what was left out. A new camera cannot be added so.
// Blocks while it asks; one thread.
#pragma once

#include "camera_file.hpp"
#include "common/api.hpp"

#include <functional>

namespace weir::apps {

struct ImportOptions {
  bool create = false;  // tenants and sites that are missing
  bool update = false;  // cameras that exist already
};

// Adds one camera, and the tenant and site that are missing where they are to be created.
Result<json::value> add_camera(Api& api, const json::object& camera, bool create);

struct Imported {
  int line = 0;
  std::string camera = {};
  std::string result = {};   // added, updated, failed
  std::string message = {};  // why it failed
  json::array warnings = {};  // what the control plane says is probably wrong with it
};

struct ImportCounts {
  int added = 0, updated = 0, failed = 0;
  int not_tried = 0;  // after the one that ended it
};
std::string counts_text(const ImportCounts& counts);

// Tells `each` about every line, until it answers false. Goes on after a failure, but ends when the control plane is
// out of reach or silent.
ImportCounts import_cameras(Api& api, const std::vector<CameraLine>& lines, const ImportOptions& options,
                            const std::function<bool(const Imported&)>& each);

}  // namespace weir::apps
