// Timeline: which frame of its loop a camera shows at which moment.
//
// It is a function of the wall clock alone: at time T a camera shows the frame at (T + phase) of its endless loop. So a
// reconnect, and even another process, continues where the first would be; and cameras with different phases are not in
// step. Frames are counted from the epoch ("running" numbers), which keeps the arithmetic exact for every frame rate
// and loop length. Plain value; any thread.
#pragma once

#include "weir/base/time.hpp"
#include "weir/camsim/stamp.hpp"

#include <cstdint>
#include <string_view>

namespace weir::camsim {

struct Timeline {
  int fps = 10;
  int frames = 1;  // of the loop
  Duration phase{};

  std::int64_t running_at(WallTime time) const;   // the newest frame at this time
  WallTime captured(std::int64_t running) const;  // when that frame was or will be taken
  int in_loop(std::int64_t running) const;
  Stamp stamp(int number) const;
  Duration length() const { return Duration(frames * std::int64_t{1'000'000} / fps); }
};

// A camera's own phase, from its name: the same in every process.
Duration phase_of(std::string_view camera_name);

// The frame that carries this stamp, of all the loop's rounds the one nearest to `near`.
struct Capture {
  WallTime time;
  std::int64_t running;
};
Capture capture_time(const Stamp& stamp, const Timeline& timeline, WallTime near);

}  // namespace weir::camsim
