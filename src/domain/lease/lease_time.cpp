#include "weir/lease/lease_time.hpp"

#include "weir/base/result.hpp"
#include "weir/lease/version.hpp"

#include <algorithm>

namespace weir::lease {

LeaseTime lease_time(const StoreState& state, WallTime clock) {
  return state.lease_now + std::clamp<Duration>(clock - state.mark, Duration(0), kStepMax);
}

bool tick(StoreState& state, WallTime clock, Duration longest_ttl) {
  Duration passed = clock - state.mark;
  bool gap = passed > kGapMin || passed < Duration(0);
  state.lease_now = lease_time(state, clock);
  state.mark = clock;
  if (!gap || state.lease_now - state.hold_opened < kHoldEvery) return false;
  state.hold_opened = state.lease_now;
  state.hold_until = state.lease_now + longest_ttl / 3 + 2s;
  return true;
}

void open_epoch(StoreState& state, LeaseTime now, Duration ttl_max) {
  WEIR_ASSERT(state.epoch < kEpochMax);
  ++state.epoch;
  state.closed_until = std::max(state.closed_until, now + ttl_max);
}

}  // namespace weir::lease
