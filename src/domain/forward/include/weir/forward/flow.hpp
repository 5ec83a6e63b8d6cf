// Flow: whether the destination takes what it is sent, judged by the bytes that its machine has acknowledged.
//
// That a connection is open proves nothing: a black hole and a peer that stopped reading both look connected for
// minutes. The clock runs while bytes are under way and none is acknowledged; `stalled` is its limit. Pure; one
// thread.
#pragma once

#include "weir/base/time.hpp"

#include <cstdint>

namespace weir::forward {

struct Progress {
  std::uint64_t acked_bytes = 0;        // since the connection began
  std::uint64_t outstanding_bytes = 0;  // handed to the kernel, not acknowledged
};

class Flow {
 public:
  enum class State { waiting, flowing, silent, stalled };
  static constexpr Duration kSilent = 2s;  // without an acknowledgement: not flowing any more

  Flow(const Progress& opened, Instant now, Duration stall_limit)
      : limit_(stall_limit), greeting_(opened.acked_bytes + opened.outstanding_bytes), acked_(opened.acked_bytes),
        moved_(now), media_moved_(now) {}

  State look(const Progress& progress, Instant now) {
    if (progress.acked_bytes > acked_ || progress.outstanding_bytes == 0) moved_ = now;
    if (progress.acked_bytes > acked_ && progress.acked_bytes > greeting_) {
      started_ = true;
      media_moved_ = now;
    }
    acked_ = progress.acked_bytes;
    if (now - moved_ >= limit_) return State::stalled;
    if (!started_) return State::waiting;
    return now - media_moved_ < kSilent ? State::flowing : State::silent;
  }
  // Acknowledged bytes of the media, without those that opened the connection.
  std::uint64_t media_bytes() const { return acked_ > greeting_ ? acked_ - greeting_ : 0; }

 private:
  const Duration limit_;
  const std::uint64_t greeting_;
  std::uint64_t acked_;
  Instant moved_, media_moved_;
  bool started_ = false;
};

}  // namespace weir::forward
