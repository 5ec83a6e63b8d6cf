// Restream: a camera that is read through a go2rtc on this machine, so that several readers cost its recorder one
// session.
//
// `open` has go2rtc know the camera as a stream, reads that stream, which makes go2rtc dial the camera, and succeeds
// when go2rtc has received more of the camera at a second look than at the first. go2rtc keeps the stream in memory
// only; `close` removes it once nobody reads it. A go2rtc that was restarted knows no stream, and is told again with
// each dial, so that the dials of its cameras wait for their turns as all dials do. Where go2rtc cannot reach the
// camera, the error has the code that go2rtc's log gives a reason for; without one, the code of the failed reading.
// Works with go2rtc 1.9. A source's thread is its camera's; `interrupt` may come from any.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/secret.hpp"
#include "weir/ports/video_source.hpp"

#include <functional>

namespace weir::go2rtc {

struct Config {
  std::string api;        // "http://127.0.0.1:1984"
  std::string rtsp_base;  // "rtsp://127.0.0.1:8554"
  Duration connect_timeout = 5s;
  Duration stall_timeout = 4s;
};

// How the stream is read that go2rtc offers under a URL.
using OpenStream = std::function<Result<std::unique_ptr<VideoSource>>(const Secret& url)>;
// Where a camera's URL leads, or why nobody goes there: go2rtc dials whatever it is given. May block; called by `open`.
using Judge = std::function<Result<Secret>(const Secret& url)>;

// Only rtsp and rtsps: for other schemes go2rtc has other ways, and runs programs for some.
bool can_restream(const Secret& url);

Result<std::unique_ptr<VideoSource>> make_restream(const Config& config, const CameraId& camera, const Secret& url,
                                                   Judge judge, const OpenStream& open);

}  // namespace weir::go2rtc
