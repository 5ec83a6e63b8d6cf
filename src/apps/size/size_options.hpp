// What `weir size` and the helper's `measure` are asked alike: which streams, which model. Plain functions; any thread.
#pragma once

#include "common/command.hpp"

#include "weir/camera/config.hpp"

namespace weir::apps {

struct SizeOptions {
  std::vector<camera::FrameSize> sizes = {{1920, 1080}};
  std::string codec = "h264";
  int stream_fps = 25;
  camera::Model model = {};
};

// --resolution, --codec, --stream-fps and --model; a usage error where one of them makes no sense.
Result<SizeOptions> read_size_options(const Arguments& arguments);

}  // namespace weir::apps
