// CrashLoop: when a worker that ended is started again.
//
// The first time at once, so that one crash costs next to nothing; then later and later; and never more often than a
// cap within a window, so that a worker that cannot live does not eat the machine. Pure; any thread.
#pragma once

#include "weir/base/backoff.hpp"

#include <deque>

namespace weir::restart {

struct CrashPolicy {
  Backoff backoff{.first = 500ms, .cap = 30s};
  Duration calm = 60s;      // after a worker that lived this long, the delays start from the beginning
  int most = 10;            // starts within the window
  Duration window = 300s;
  friend bool operator==(const CrashPolicy&, const CrashPolicy&) = default;
};

class CrashLoop {
 public:
  // A process ended at `now` after `lived`; `draw` is uniform in [0, 1).
  void crashed(Instant now, Duration lived, const CrashPolicy& policy, double draw);
  // The earliest moment for another start.
  Instant next_start() const { return next_; }
  bool capped() const { return capped_; }

 private:
  std::deque<Instant> crashes_;
  int in_a_row_ = 0;
  bool capped_ = false;
  Instant next_{};
};

}  // namespace weir::restart
