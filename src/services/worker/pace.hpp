// Pace: which of a camera's pictures are looked at when more come than `max_fps` allows.
//
// Pictures are counted by their place in the stream, not by when they arrived: late ones are then not bunched, and
// with B-frames a picture arrives before others that are shown before it. A stream's time may jump, or stand still; the
// pace then goes on from where it is. One thread only.
#pragma once

#include "weir/base/time.hpp"

#include <algorithm>
#include <optional>

namespace weir::worker {

class Pace {
 public:
  bool due(Duration stream_time, Instant received, double max_fps) {
    Duration interval = from_seconds(1.0 / max_fps);
    bool restart = !last_ || stream_time < *last_ - kBack || received > received_ + interval + kStands;
    if (!restart && stream_time + interval / 20 < next_) return false;
    next_ = restart ? stream_time + interval : std::max(next_ + interval, stream_time);
    last_ = stream_time;
    received_ = received;
    return true;
  }

 private:
  static constexpr Duration kBack = 1s;    // further back than any order of presentation explains
  static constexpr Duration kStands = 1s;  // so long after it was due by the clock, it is due
  std::optional<Duration> last_ = {};      // the last one that was due
  Duration next_{};
  Instant received_{};
};

}  // namespace weir::worker
