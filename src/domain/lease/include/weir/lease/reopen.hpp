// Reopening: how a copy of a store becomes the store ("A new epoch closes the store for a while" in
// docs/lease-protocol.md).
//
// A copy may lack what the store answered after it was taken, epochs included: a replica may have been promoted since,
// or an older copy restored. No number that was handed out may be handed out again, so the copy goes on under an epoch
// above everything that is known. The known part is the copy and the store that it replaces, where that can be read.
// For what is not known the epoch leaps: a store would have to open kEpochLeap epochs between the copy and its loss to
// reach the next one. Plain values; the caller reads and writes them.
#pragma once

#include "weir/base/result.hpp"
#include "weir/lease/lease_time.hpp"

#include <optional>

namespace weir::lease {

inline constexpr std::int64_t kEpochLeap = 16;

struct Reopening {
  bool complete = false;                    // nothing was answered after the copy was taken, and nothing will be
  std::optional<StoreState> replaced = {};  // the store in whose place the copy comes
  std::optional<std::int64_t> epoch = {};   // what the operator asks for
  Duration ttl_max = {};                    // no lease that a lost commit granted lives longer
};

// The copy's row as its new store begins with it. Fails where the epoch that was asked for is not above all that is
// known, and where no epoch is left.
Result<StoreState> reopen(StoreState copy, const Reopening& how);

}  // namespace weir::lease
