// Version: the fencing number. It names one emitter of one camera's events and only ever rises.
//
// version = epoch << 40 | n, with n from one counter of the store that is never reset. The epoch rises when the store
// may have lost commits, so that a number handed out by a lost commit is never handed out again. Below 2^53: a JSON
// number holds it exactly.
#pragma once

#include <compare>
#include <cstdint>

namespace weir::lease {

inline constexpr int kCounterBits = 40;
inline constexpr std::int64_t kEpochMax = 8191;

struct Version {
  std::int64_t n = 0;  // 0: never owned

  static constexpr Version make(std::int64_t epoch, std::int64_t counter) {
    return {(epoch << kCounterBits) | counter};
  }
  constexpr std::int64_t epoch() const { return n >> kCounterBits; }
  friend constexpr auto operator<=>(Version, Version) = default;
};

}  // namespace weir::lease
