// Patches: what workers want changed of sessions, until somebody answers. The first answer within five seconds counts;
// a bounded number is open at a time. Plain value: the time comes in; one thread.
#pragma once

#include "weir/base/time.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace weir::cluster {

class Patches {
 public:
  static constexpr Duration kWithin = 5s;
  static constexpr size_t kMax = 256;

  struct Open {
    std::string worker;
    std::int64_t session = 0;
    Instant until{};
  };
  // False where too many are open.
  bool open(std::string worker, std::int64_t session, Instant now) {
    if (open_.size() >= kMax) return false;
    open_.push_back({std::move(worker), session, now + kWithin});
    return true;
  }
  // Whom to tell the answer; nobody where it comes too late, or another one was first.
  std::vector<Open> answered(std::int64_t session) {
    return take([&](const Open& each) { return each.session == session; });
  }
  std::vector<Open> late(Instant now) {
    return take([&](const Open& each) { return each.until <= now; });
  }

 private:
  template <class Which>
  std::vector<Open> take(Which which) {
    auto rest = std::stable_partition(open_.begin(), open_.end(), [&](const Open& each) { return !which(each); });
    std::vector<Open> out(std::make_move_iterator(rest), std::make_move_iterator(open_.end()));
    open_.erase(rest, open_.end());
    return out;
  }
  std::vector<Open> open_;
};

}  // namespace weir::cluster
