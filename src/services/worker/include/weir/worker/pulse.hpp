// Pulse: by when a thread must give its next sign of life.
//
// The thread sets that moment before every call that takes time. Inside a call with a time-out it counts as alive,
// however long that is; past the moment, it is stuck. One thread sets it, any thread asks.
#pragma once

#include "weir/base/clock.hpp"

#include <atomic>

namespace weir::worker {

class Pulse {
 public:
  void back_within(Duration most) { due_ = (boot_now() + most).time_since_epoch().count(); }
  // The thread waits for an order, which may take for ever.
  void waits() { due_ = Instant::max().time_since_epoch().count(); }
  // How long it is overdue; not positive while all is well.
  Duration late(Instant now) const { return now.time_since_epoch() - Duration(due_.load()); }

 private:
  std::atomic<Duration::rep> due_ = Instant::max().time_since_epoch().count();
};

}  // namespace weir::worker
