// Encoding: from a profile and a video file to the access units of a loop. Blocks; any thread.
#pragma once

#include "weir/camsim/loop.hpp"

namespace weir::camsim {

Result<LoopPtr> encode_loop(const Profile& profile, const std::string& footage_file);

}  // namespace weir::camsim
