#include "stall.hpp"

#include "weir/base/clock.hpp"

#include <poll.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

namespace weir::test {

StallMonitor& StallMonitor::get() {
  static auto* the = new StallMonitor;  // its thread runs until the process ends
  return *the;
}

StallMonitor::StallMonitor() {
  std::thread([this] {
    for (Instant last = boot_now();;) {
      ::poll(nullptr, 0, 20);
      Instant now = boot_now();
      if (Duration late = now - last - 20ms; late > 100ms) total_ += late.count();
      last = now;
    }
  }).detach();
}

void between_looks() { ::poll(nullptr, 0, 5); }
bool long_run() { return std::getenv("WEIR_LONG") != nullptr; }

bool eventually(Duration limit, const std::function<bool()>& condition) {
  Duration stalled_before = StallMonitor::get().total();
  Instant deadline = boot_now() + limit;
  while (boot_now() < deadline) {
    if (condition()) return true;
    between_looks();
  }
  if (condition()) return true;
  if (Duration stalled = StallMonitor::get().total() - stalled_before; stalled > limit / 2)
    std::printf("INCONCLUSIVE: the machine stood still for %.1f s of %.1f s\n", seconds(stalled), seconds(limit));
  return false;
}

testing::AssertionResult within(double measured_s, double limit_s, Duration stalled_before) {
  if (measured_s < limit_s) return testing::AssertionSuccess();
  double stalled = seconds(StallMonitor::get().total() - stalled_before);
  if (measured_s - stalled < limit_s)
    std::printf("INCONCLUSIVE: %.2f s instead of less than %.2f s, and the machine stood still for %.2f s\n",
                measured_s, limit_s, stalled);
  return testing::AssertionFailure() << measured_s << " s, limit " << limit_s << " s";
}

}  // namespace weir::test
