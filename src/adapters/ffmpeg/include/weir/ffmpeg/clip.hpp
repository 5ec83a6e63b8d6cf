// A short clip as a camera would send it, made on the spot: for measuring what this machine needs to decode one.
//
// A textured scene with figures that walk through it, and a sensor's noise, encoded without B-frames. It holds one group
// of pictures: a keyframe, and those that refer to it. Blocks while it encodes; any thread.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"

#include <string>

namespace weir::ffmpeg {

struct ClipConfig {
  std::string codec = "h264";  // or hevc, mjpeg
  int width = 1920, height = 1080;
  int fps = 25;                // pictures, too: it lasts a second
  Duration time_max = 3s;      // for encoding: a slow machine gets fewer pictures
};

struct ClipFacts {
  int pictures = 0;  // at least eight
  int kbit = 0;      // a second
};

// Writes it to a Matroska file. The encoder may use at most what cameras are delivered with: 4 Mbit/s for 1080p at 25
// fps, by pixels; half of it in H.265, and in M-JPEG six times as much.
Result<ClipFacts> write_clip(const std::string& path, const ClipConfig& config);

}  // namespace weir::ffmpeg
