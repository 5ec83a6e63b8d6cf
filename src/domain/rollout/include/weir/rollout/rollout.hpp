// Rollout: how a shard gets a new worker process while its cameras go on ("Blue confirms before green speaks" in
// docs/lease-protocol.md).
//
// Blue is the worker that publishes ("speaks"). Green is started in standby: it connects and decodes and publishes
// nothing. When enough of green's cameras deliver, the cameras are moved over one by one (silence, fresh version,
// activate) and blue is drained. A green that ends or does not get ready in time is given up: blue speaks on, and the
// next try waits longer. One machine a shard. Pure: no clock, no I/O; the caller performs the actions and reports
// what came of them.
#pragma once

#include "weir/base/backoff.hpp"
#include "weir/base/json.hpp"

#include <array>
#include <variant>
#include <vector>

namespace weir::rollout {

enum class Mode { live, bluegreen };
inline constexpr std::array<json::EnumName<Mode>, 2> kModeNames = {{{Mode::live, "live"}, {Mode::bluegreen, "bluegreen"}}};
constexpr auto& enum_names(Mode) { return kModeNames; }

enum class Phase {
  steady,    // one worker
  warming,   // green stands by
  moving,    // green speaks for what was moved already; blue for the rest, and soon for nothing
  draining,  // everything was moved; blue ends
};
inline constexpr std::array<json::EnumName<Phase>, 4> kPhaseNames = {
    {{Phase::steady, "steady"}, {Phase::warming, "warming"}, {Phase::moving, "moving"}, {Phase::draining, "draining"}}};
constexpr auto& enum_names(Phase) { return kPhaseNames; }

struct Policy {
  Duration ready_within = 30s;
  Duration drain_within = 15s;
  Backoff retry{.first = 5s, .cap = 300s};
};

struct State {
  Phase phase = Phase::steady;
  Instant deadline{};
  Instant not_before{};  // the next try
  int failures = 0;
};

// ---- events ----
struct Needed {};      // the running worker cannot become what is wanted without a new process
struct GreenReady {};  // its quorum delivers
struct GreenGone {};   // it ended
struct AllMoved {};    // no camera is blue's any more
struct BlueGone {};    // it ended, by itself or drained
struct StoreAway {};   // nobody can be given a version: what was moved stays where it is, the rest takes its time
struct TimePassed {};
using Event = std::variant<Needed, GreenReady, GreenGone, AllMoved, BlueGone, StoreAway, TimePassed>;

// ---- actions ----
struct StartGreen {};
struct DrainBlue {};
struct KillBlue {};    // its grace is over
struct KillGreen {};   // given up: cameras that were moved already go back to blue, under fresh versions
struct PromoteGreen {};  // it is the shard's only worker now, and the next rollout's blue
using Action = std::variant<StartGreen, DrainBlue, KillBlue, KillGreen, PromoteGreen>;

struct Step {
  State next;
  std::vector<Action> actions;
};

// `draw` is uniform in [0, 1).
Step step(State state, const Event& event, Instant now, const Policy& policy, double draw);

}  // namespace weir::rollout
