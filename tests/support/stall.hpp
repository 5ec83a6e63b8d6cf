// StallMonitor: tells a slow program from a machine that stood still.
//
// A thread that does nothing but wake up every 20 ms adds up by how much it woke too late. A real-time test whose
// limit passed while the machine stood still for more than half of it is inconclusive: `eventually` says so with a
// line that the test report looks for, and the test is run once more. So does `within` for a time that was measured.
#pragma once

#include "weir/base/time.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>

namespace weir::test {

class StallMonitor {
 public:
  static StallMonitor& get();
  Duration total() const { return Duration(total_.load()); }

 private:
  StallMonitor();
  std::atomic<Duration::rep> total_{0};
};

// Asks again every few milliseconds until `condition` holds or `limit` has passed. False if it never held.
bool eventually(Duration limit, const std::function<bool()>& condition);
// A time that was measured is below its limit. Where it is not, and the machine stood still for all that is too much
// since the monitor said `stalled_before`, it fails as inconclusive.
testing::AssertionResult within(double measured_s, double limit_s, Duration stalled_before);
// Waits a few milliseconds: between two looks at a condition, never instead of one.
void between_looks();
bool long_run();  // ./dev test --long

}  // namespace weir::test
