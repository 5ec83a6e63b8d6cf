// Pulse: by when a thread will be heard of again.
//
// The thread says so before everything that takes its time. Inside a call with a time-out it is alive, however long that
// is; past what it said, it is stuck. One thread says, any thread asks.
#pragma once

#include "weir/base/clock.hpp"

#include <atomic>

namespace weir::worker {

class Pulse {
 public:
  void back_within(Duration most) { due_ = (boot_now() + most).time_since_epoch().count(); }
  // It waits for somebody else's word: that may take for ever.
  void waits() { due_ = Instant::max().time_since_epoch().count(); }
  // How long it is overdue; not positive while all is well.
  Duration late(Instant now) const { return now.time_since_epoch() - Duration(due_.load()); }

 private:
  std::atomic<Duration::rep> due_ = Instant::max().time_since_epoch().count();
};

}  // namespace weir::worker
