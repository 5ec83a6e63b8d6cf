// CaptureClock: when a connection's pictures were taken, by one clock for as long as that can be.
//
// A camera may say when it took a picture; whether its clock is right shows only against ours. The camera's clock is
// believed once it differs little, so that every connection to a camera decides alike, until it differs by far more:
// a slow network delays pictures, and a clock near one bound must not be believed and disbelieved in turn. Otherwise
// a picture counts as taken when it arrived. In the order of presentation the time never falls, unless our own clock
// was set back. One thread only.
#pragma once

#include "weir/base/time.hpp"

#include <algorithm>
#include <optional>

namespace weir::ffmpeg {

class CaptureClock {
 public:
  // `now` is when the picture arrived.
  WallTime at(std::optional<WallTime> said, WallTime now, Duration stream_time) {
    believed_ = said && std::chrono::abs(*said - now) <= (believed_ ? kDisbelieved : kBelieved);
    WallTime best = believed_ ? std::min(*said, now) : now;
    // This picture came after one that is shown later, and was taken before that one.
    if (stream_time < stream_time_) return std::max(before_, latest_ - (stream_time_ - stream_time));
    stream_time_ = stream_time;
    before_ = latest_ > now + kSetBack ? best : latest_;
    return latest_ = std::max(before_, best);
  }

 private:
  static constexpr Duration kBelieved = 500ms, kDisbelieved = 2s;
  static constexpr Duration kSetBack = 500ms;  // the arrivals of two pictures are not read off that badly
  bool believed_ = false;
  WallTime before_{}, latest_{};  // of the last two pictures that were each shown after all before them
  Duration stream_time_ = Duration::min();  // of the latest
};

}  // namespace weir::ffmpeg
