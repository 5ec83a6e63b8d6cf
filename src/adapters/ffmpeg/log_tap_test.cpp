#include "wire/av.hpp"
#include "wire/av_log.hpp"

#include <gtest/gtest.h>

namespace weir::ffmpeg {
namespace {

TEST(LogTap, AServersComplaint_Counts_WhereFfmpegGivesUpForIt) {
  LogTap tap(Secret("rtmp://h/app/key"), {Secret("xyzzy-key")});
  tap.line("rtmp", AV_LOG_WARNING, "Server error: releaseStream is not known here");
  tap.line("rtmp", AV_LOG_VERBOSE, "Server error: authmod=adobe");
  EXPECT_EQ(tap.heard.complaint, "");
  tap.line("rtmp", AV_LOG_ERROR, "Server error: xyzzy-key is not allowed");
  EXPECT_EQ(tap.heard.complaint, "*** is not allowed");
}

}  // namespace
}  // namespace weir::ffmpeg
