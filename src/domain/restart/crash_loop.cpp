#include "weir/restart/crash_loop.hpp"

namespace weir::restart {

void CrashLoop::crashed(Instant now, Duration lived, const CrashPolicy& policy, double draw) {
  if (lived >= policy.calm) in_a_row_ = 0;
  next_ = in_a_row_ == 0 ? now : now + policy.backoff.delay(in_a_row_ - 1, draw);
  ++in_a_row_;
  crashes_.push_back(now);
  while (crashes_.front() + policy.window <= now) crashes_.pop_front();
  capped_ = std::ssize(crashes_) >= policy.most;
  if (capped_) next_ = std::max(next_, crashes_.front() + policy.window);
}

}  // namespace weir::restart
