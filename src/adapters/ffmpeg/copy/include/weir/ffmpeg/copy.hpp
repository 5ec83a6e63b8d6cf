// The two ends of a forward, with libavformat alone: an RTSP stream in, an RTMP or RTSP publication out, nothing decoded.
//
// In: RTSP over TCP, or rtsps; every codec that FFmpeg reads there. Out: RTMP or RTMPS in an FLV container, which takes
// H.264 and AAC; or RTSP over TCP, or rtsps, to a hub, which takes H.264, H.265, VP8, VP9 and AV1 with AAC or Opus. An
// output refuses what it does not carry (codec_unsupported) before it dials. Nothing that FFmpeg logs or that a failure
// says holds the stream key or a credential. Objects may be made on any thread and do not block.
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

struct PublishConfig {
  Secret url;                      // rtsp:// or rtsps://, checked already
  Duration connect_timeout = 5s;   // from the dial to the hub's consent
  Duration stall_timeout = 8s;     // without an acknowledged byte, while some are under way
  std::function<bool(Instant now)> may_send = [](Instant) { return true; };  // asked before and during every write
};
std::unique_ptr<CopyOutput> make_publish_output(const PublishConfig& config);

}  // namespace weir::ffmpeg
