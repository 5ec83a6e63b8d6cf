// One dial of an RTSP server or opening of a file, bounded by a Watch, its log lines heard by a LogTap. Belongs to
// the source's thread.
#pragma once

#include "address.hpp"
#include "watch.hpp"

namespace weir::ffmpeg {

// A redirect is never followed. `url` is as FFmpeg wants it.
Result<AvPtr<AVFormatContext>> open_stream(const std::string& url, const AVInputFormat* format, AvOptions& options,
                                           Watch& watch, LogTap& tap, Duration timeout);

struct RtspDial {
  Secret url;
  bool udp = false;                // rtsps is always TCP
  bool loopback = false;
  Duration timeout = 5s;
  const char* media = "video";     // or "video+audio"
};
// `peer` is the address that is connected to.
Result<AvPtr<AVFormatContext>> dial_rtsp(const RtspDial& dial, Watch& watch, LogTap& tap, std::string& peer);

}  // namespace weir::ffmpeg
