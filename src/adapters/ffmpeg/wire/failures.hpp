// From FFmpeg's error numbers, and what was heard while it worked, to the code and sentence of a StreamError.
// Pure; any thread.
#pragma once

#include "av_log.hpp"

#include "weir/ports/video_source.hpp"

namespace weir::ffmpeg {

enum class Ended { by_itself, at_deadline, by_interrupt };

// The answer of a call that `interrupt` ended.
Error interrupted();
// A connection that never became a stream.
Error open_failure(int error, Ended ended, const LogTap::Heard& heard, Duration timeout);
// A stream that delivered before.
Error read_failure(int error, Ended ended, Duration timeout);

}  // namespace weir::ffmpeg
