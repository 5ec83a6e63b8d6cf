// The sources that FFmpeg's libraries read: RTSP cameras, HTTP snapshots, and files for tests and benchmarks.
//
// The URL's scheme chooses: `rtsp`, `rtsps`, `http`, `https` (a JPEG fetched again and again) or `file`. A host name is
// resolved once, before FFmpeg sees it, and FFmpeg is given the address: link-local, multicast and unspecified ones
// are refused, loopback unless allowed; redirects, and other hosts that a camera names, are never followed. Nothing
// that FFmpeg logs or that an error says holds a credential. `make_source` may be called from any thread and does not
// block; a source belongs to one.
#pragma once

#include "weir/base/secret.hpp"
#include "weir/ffmpeg/address.hpp"
#include "weir/ports/video_source.hpp"

namespace weir::ffmpeg {

struct SourceConfig {
  Secret url;
  camera::Transport transport = camera::Transport::tcp;  // rtsps is always TCP
  bool loopback = false;           // cameras on this machine itself
  bool files = false;              // local files, as an operator names them; never for a tenant's cameras
  bool tls_verify = false;         // https only: few cameras have a certificate that anybody signed
  Duration connect_timeout = 5s;   // from the dial to the stream's description
  Duration stall_timeout = 4s;     // without a picture
  Duration snapshot_interval = 1s;
  bool realtime = true;            // a file is read at its own pace, or as fast as it can be
  int threads = 1;                 // of the decoder; more than one works on the slices of one picture
};

// URL_REFUSED where the scheme or a combination is not allowed.
Result<std::unique_ptr<VideoSource>> make_source(const SourceConfig& config);

}  // namespace weir::ffmpeg
