// Backoff: how long to wait before the next try. Pure: the caller draws the randomness.
#pragma once

#include "weir/base/time.hpp"

#include <algorithm>
#include <cmath>

namespace weir {

struct Backoff {
  Duration first = 250ms;
  Duration cap = 10s;
  double factor = 2.0;
  double jitter = 0.5;  // the share of the delay that is random: 0 none, 1 "full jitter"
  Duration spread{};    // at most this much is added at random, above the cap too

  // `attempt` counts from 0; `draw` is uniform in [0, 1).
  Duration delay(int attempt, double draw) const {
    double grown = seconds(first) * std::pow(factor, std::min(attempt, 62));
    double bounded = std::min(grown, seconds(cap));
    return from_seconds(bounded * (1.0 - jitter + jitter * draw)) + from_seconds(seconds(spread) * draw);
  }
  friend bool operator==(const Backoff&, const Backoff&) = default;
};

}  // namespace weir
