// Backlog: how long a picture lay between the camera and a reader that cannot keep up.
//
// The picture lies in the buffers of the connection, where it cannot be seen. But as long as the reader never had to
// wait, the buffers were never empty: by as much as its clock ran ahead of the stream's time since then, the reader
// is behind. Every wait starts the comparison anew, so that a camera whose timestamps run slow does not look like a
// backlog. One thread only.
#pragma once

#include "weir/base/time.hpp"

#include <algorithm>

namespace weir::ffmpeg {

class Backlog {
 public:
  // `waited`: the picture was not there yet when it was asked for.
  Duration at(bool waited, Instant received, Duration stream_time) {
    Duration ahead = received.time_since_epoch() - stream_time;
    if (waited) least_ = ahead;
    least_ = std::min(least_, ahead);
    return std::min(ahead - least_, kMost);
  }

 private:
  static constexpr Duration kMost = 10s;  // timestamps may also be nonsense
  Duration least_ = Duration::max();
};

}  // namespace weir::ffmpeg
