// The two ends of a forward, with libavformat alone: an RTSP stream in, an RTMP publication out, nothing decoded.
//
// In: RTSP over TCP, or rtsps; H.264, and AAC beside it. Out: RTMP or RTMPS in an FLV container. Nothing that FFmpeg
// logs or that a failure says holds the stream key or a credential. Objects may be made on any thread and do not block.
#pragma once

#include "weir/forward/destination.hpp"
#include "weir/ports/media_copy.hpp"

#include <functional>

namespace weir::ffmpeg {

struct CopyInputConfig {
  Secret url;
  Duration connect_timeout = 5s;  // from the dial to the stream's description
  Duration stall_timeout = 4s;    // without a packet
};
std::unique_ptr<CopyInput> make_copy_input(const CopyInputConfig& config);

struct CopyOutputConfig {
  forward::Destination to;
  Duration connect_timeout = 10s;  // from the dial to the destination's consent
  Duration stall_timeout = 8s;     // without an acknowledged byte, while some are under way
  bool tls_verify = true;
  std::string ca_file = {};        // instead of the authorities that the system knows
  std::function<bool(Instant now)> may_send = [](Instant) { return true; };  // asked before and during every write
};
std::unique_ptr<CopyOutput> make_copy_output(const CopyOutputConfig& config);

}  // namespace weir::ffmpeg
