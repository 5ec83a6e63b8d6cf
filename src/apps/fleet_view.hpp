// FleetView: is everything all right? What `weir status` concludes from the lists of cameras, leases and runners.
//
// A camera that is enabled should stream; one that does not has a reason, said so that somebody can act on it. Pure
// functions over the API's JSON; main thread only.
#pragma once

#include "weir/base/json.hpp"

#include <string>
#include <vector>

namespace weir::apps {

struct Quiet {
  std::string camera, runner, reason;  // runner: who has it; "" where nobody does
};

struct FleetView {
  int cameras = 0, enabled = 0, leased = 0, streaming = 0;
  int pending = 0;  // enabled, and nobody has it
  int live = 0, silent = 0, draining = 0, cordoned = 0;
  std::vector<Quiet> quiet = {};  // enabled and not streaming
  std::vector<Quiet> blind = {};  // streaming, but the model does not work
};

FleetView fleet_view(const json::array& cameras, const json::array& leases, const json::array& runners);
// One line: "everything is all right: …", or how many cameras do not stream or see nothing, and why.
std::string verdict(const FleetView& fleet);

// What an order to drain that was just given to a runner brings about, and what its cameras lack elsewhere: "" where
// the other runners have room for all of them.
std::string drain_sentence(const json::value& runner);
std::string drain_warning(const json::value& runner, const json::array& runners);

}  // namespace weir::apps
