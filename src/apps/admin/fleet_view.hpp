// FleetView: whether everything is all right: what `weir status` concludes from the lists of cameras, leases and
// runners.
//
// A camera that is enabled should stream and be looked at as often as wanted; for each that does not, the view gives
// a reason on which a person can act. Pure functions over the API's JSON; main thread only.
#pragma once

#include "weir/base/json.hpp"

#include <string>
#include <vector>

namespace weir::apps {

struct Quiet {
  std::string camera, runner, reason;  // runner: who has it; "" where nobody does
};

// A camera that is looked at less often than wanted, in pictures a second.
struct Slow {
  std::string camera, runner;
  double looked = 0, wanted = 0;
};

// What the control plane says is probably wrong in the configuration of an enabled camera.
struct Mistake {
  std::string camera, code, field, message;
};

struct FleetView {
  int cameras = 0, enabled = 0, leased = 0, streaming = 0;
  int pending = 0;  // enabled, and nobody has it
  int live = 0, silent = 0, draining = 0, cordoned = 0;
  std::vector<Quiet> quiet = {};  // enabled and not streaming
  std::vector<Quiet> blind = {};  // streaming, but the model does not work
  std::vector<Slow> slow = {};    // streaming, and looked at too seldom
  int young = 0;                  // streaming, and how often they are looked at is not known yet
  std::vector<Mistake> mistakes = {};
};

// `sites`: at least those of cameras that wait for their site's budget.
FleetView fleet_view(const json::array& cameras, const json::array& leases, const json::array& runners,
                     const json::array& sites = {});
// Whether a runner says that a camera waits for its site's budget.
bool any_waits_for_budget(const json::array& runners);
// One line: "everything is all right: …", or how many cameras do not stream or see nothing, and why.
std::string verdict(const FleetView& fleet);

// What an order to drain that was just given to a runner brings about, and what its cameras lack elsewhere: "" where
// the other runners have room for all of them.
std::string drain_sentence(const json::value& runner);
std::string drain_warning(const json::value& runner, const json::array& runners);

}  // namespace weir::apps
