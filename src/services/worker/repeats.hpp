// Repeats: which of a camera's failures are news for the log.
//
// A camera that is switched off for the night fails in the same way thousands of times. The first failure is logged,
// and each with another code; of the rest a line now and then tells how many there were. One thread.
#pragma once

#include "weir/base/time.hpp"
#include "weir/restart/stream_error.hpp"

#include <optional>

namespace weir::worker {

class Repeats {
 public:
  // How many tries in a row have failed with this code, where it is time to log that: 1 is the first. 0: the log has
  // it already.
  int failed(restart::StreamErrorCode code, Instant now) {
    if (code_ != code) tries_ = 0;
    code_ = code;
    if (++tries_ > 1 && now - said_ < kSaidAgain) return 0;
    said_ = now;
    return tries_;
  }
  void succeeded() { code_.reset(); }

 private:
  static constexpr Duration kSaidAgain = 5min;
  std::optional<restart::StreamErrorCode> code_;
  int tries_ = 0;
  Instant said_{};
};

}  // namespace weir::worker
