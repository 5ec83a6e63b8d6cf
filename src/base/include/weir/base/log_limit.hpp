// LogLimit: one line every few seconds of what may happen all the time. Belongs to the thread that logs.
//
//   if (auto left_out = limit.due(clock.now())) log::warn("http.full").with("left_out", *left_out);
#pragma once

#include "weir/base/time.hpp"

#include <optional>
#include <utility>

namespace weir {

class LogLimit {
 public:
  explicit LogLimit(Duration every) : every_(every) {}
  // How many lines were left out since the last one; none where this one is left out as well.
  std::optional<int> due(Instant now) {
    if (said_ && now - *said_ < every_) {
      ++left_out_;
      return std::nullopt;
    }
    said_ = now;
    return std::exchange(left_out_, 0);
  }

 private:
  const Duration every_;
  std::optional<Instant> said_;
  int left_out_ = 0;
};

}  // namespace weir
