// FailedStarts: whether processes start on this machine at all.
//
// One process that ends before it is ready says little; several in a row say that the fault is the machine's, and
// that the cameras that wait for a process here should go to other machines. The first process that gets ready ends
// that. Pure; one thread.
#pragma once

#include "weir/base/time.hpp"

#include <utility>

namespace weir::restart {

class FailedStarts {
 public:
  // `limit`: after so many failures in a row, this machine counts as one where no process starts.
  bool none_starts(int limit) const { return in_a_row_ >= limit; }
  // A process ended before it was ready; true for the one that reaches the limit.
  bool failed(Instant now, int limit) {
    last_ = now;
    return ++in_a_row_ == limit;
  }
  // A process is ready; true where until now none started.
  bool succeeded(int limit) { return std::exchange(in_a_row_, 0) >= limit; }
  // While none starts: true now and then, when the waiting cameras are to be offered to other runners (again).
  bool offer_due(Instant now, int limit) {
    if (!none_starts(limit) || now < offer_at_) return false;
    offer_at_ = now + kOfferAgain;
    return true;
  }
  // The last failure is so long ago that another start may be risked.
  bool rested(Instant now) const { return now >= last_ + kPause; }

 private:
  static constexpr Duration kPause = 30s, kOfferAgain = 5s;
  int in_a_row_ = 0;
  Instant last_{}, offer_at_{};
};

}  // namespace weir::restart
