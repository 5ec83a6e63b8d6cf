// Timeline: a stream's own time that goes on evenly, whatever the camera does to its timestamps.
//
// Cameras set their clocks, restart their encoders and wrap around in the middle of a stream. Within a jump's bound
// the camera is believed (pictures of a group come out of presentation order); past it, the stream goes on one step
// after the last. One thread only.
#pragma once

#include "weir/base/time.hpp"

#include <algorithm>
#include <optional>

namespace weir::ffmpeg {

class Timeline {
 public:
  // `step` is what lies between two pictures, for where nothing better is known.
  Duration at(std::optional<Duration> stamp, Duration step) {
    if (!started_) {
      started_ = true;
      offset_ = stamp ? -*stamp : Duration{0};
      return latest_;
    }
    Duration time = stamp ? *stamp + offset_ : latest_ + step;
    if (time < latest_ - kBack || time > latest_ + kAhead) {
      offset_ += latest_ + step - time;
      time = latest_ + step;
    }
    latest_ = std::max(latest_, time);
    return time;
  }

 private:
  static constexpr Duration kBack = 1s, kAhead = 10s;
  bool started_ = false;
  Duration latest_{}, offset_{};
};

}  // namespace weir::ffmpeg
