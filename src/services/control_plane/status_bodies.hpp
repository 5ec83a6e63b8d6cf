// The statuses of cameras' streams as a runner or a worker may send them in batches, without event ids and versions: from
// JSON, to the items of events that they become, and back to an answer. Pure functions; plain values.
#pragma once

#include "weir/base/json.hpp"
#include "weir/lease/row.hpp"
#include "weir/ports/event_bus.hpp"

#include <span>
#include <vector>

namespace weir::control_plane {

inline constexpr size_t kStatusesMax = 1000;

struct SaidStatus {
  CameraId camera;
  BootId boot = {};
  std::optional<lease::Version> version = {};  // most such clients know none
  bool error = false;                          // a stream.error
  json::object said = {};                      // all of it
};
// {"items":[…]}, 1 to kStatusesMax; each names its camera, and its state or its error's code.
Result<std::vector<SaidStatus>> read_statuses(const json::value& body);
// An item as the route for events takes it.
json::object write_status_event(SaidStatus status, const lease::LeaseRow& row, lease::Version version, std::string event_id);
// {"accepted":1,"items":[{"camera_uuid","result"}]}
std::string write_status_answers(std::span<const SaidStatus> statuses, std::span<const Confirmation> answers);

}  // namespace weir::control_plane
