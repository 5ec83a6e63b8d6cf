// Lease time: the clock in the store that stands still while the store is away (docs/lease-protocol.md).
//
// Leases expire in lease time. It follows the store's clock, but no step of more than half a second is ever believed:
// a stall, a restart, a reboot, an outage or a clock that was set costs a holder at most that much. When a tick finds
// such a gap, a *hold* opens: for a while nobody may take over another owner's expired lease, so that holders who were
// cut off together with the store can renew first. Plain values; the caller provides the clock's reading.
#pragma once

#include "weir/base/time.hpp"

#include <cstdint>

namespace weir::lease {

inline constexpr Duration kStepMax = 500ms;      // the most that one look at the clock can add
inline constexpr Duration kGapMin = 2s;          // a longer silence, or a mark in the future, opens a hold
inline constexpr Duration kHoldEvery = 60s;      // at most one hold in this much lease time
inline constexpr Duration kTickEvery = 250ms;

// The one row that all lease statements read.
struct StoreState {
  std::int64_t epoch = 1;
  std::int64_t counter = 0;      // the last n that was drawn
  LeaseTime lease_now{};         // lease time at `mark`
  WallTime mark{};               // the store's clock when `lease_now` was last moved
  LeaseTime hold_until{};        // expired leases of others cannot be taken before this
  LeaseTime hold_opened{-kHoldEvery};
  LeaseTime closed_until{};      // after the epoch rose: nothing changes hands before this
  friend bool operator==(const StoreState&, const StoreState&) = default;
};

// Lease time as a statement at `clock` sees it.
LeaseTime lease_time(const StoreState& state, WallTime clock);

// Moves lease time on. `longest_ttl` is the longest TTL of an unreleased lease. True if a hold was opened.
bool tick(StoreState& state, WallTime clock, Duration longest_ttl);

// The store may have lost commits: later versions lie above all earlier ones, and nothing changes hands until every
// lease that a lost commit may have granted has run out.
void open_epoch(StoreState& state, LeaseTime now, Duration ttl_max);

}  // namespace weir::lease
