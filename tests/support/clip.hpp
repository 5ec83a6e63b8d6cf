// A clip: a few seconds of moving picture and a tone, encoded once and kept under build/ for all tests. Any thread.
#pragma once

#include <string>

namespace weir::test {

// The file's path. Kinds: "h264" (with AAC), "bframes", "large" (a megabyte a second), "hevc", "opus" (H.264, Opus),
// "vp8" and "vp9" (with Opus), "pcm" (H.264 with G.711), "people" (the footage, with a tone).
std::string clip(const std::string& kind);

}  // namespace weir::test
