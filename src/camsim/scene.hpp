// FrameSource: a scene as a sequence of raw pictures, in I420 without padding. Not shared between threads.
#pragma once

#include "weir/camsim/profile.hpp"

#include <memory>

namespace weir::camsim {

using Pixels = std::vector<std::uint8_t>;  // width * height luma bytes, then two planes of a quarter each

class FrameSource {
 public:
  virtual ~FrameSource() = default;
  // The next picture; none at the end of the scene.
  virtual Result<const Pixels*> next() = 0;

  static Result<std::unique_ptr<FrameSource>> create(const Profile& profile, const std::string& footage_file);
};

}  // namespace weir::camsim
