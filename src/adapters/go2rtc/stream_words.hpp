// What is said to go2rtc about a camera, and what go2rtc says about it. Pure; any thread.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/result.hpp"
#include "weir/base/secret.hpp"
#include "weir/base/time.hpp"
#include "weir/restart/stream_error.hpp"

#include <optional>
#include <string>

namespace weir::go2rtc {

// The camera's name and a checksum of its URL without the user. go2rtc takes a URL whose path is the name of one of its
// streams for that stream, whatever the host: a name alone could be some recorder's path.
std::string stream_name(const CameraId& camera, const Secret& url);
// The URL with go2rtc's options: video only, nothing sent to the camera, patience in whole seconds. A fragment of the
// camera's own URL is left out, because go2rtc would take it for options.
Secret source_of(const Secret& url, Duration patience);

struct Look {
  bool ours = true;         // the stream leads where its source says
  std::uint64_t bytes = 0;  // that the camera's connection has delivered; 0 where there is none
  size_t readers = 0;
};
// The answer to `GET /api/streams?src=NAME`.
Result<Look> read_look(std::string_view answer, const Secret& source);

// Why go2rtc could not serve the stream, by the newest line about it in the answer to `GET /api/log` that is not older
// than `since`.
std::optional<restart::StreamError> read_reason(std::string_view log, std::string_view name, WallTime since);

}  // namespace weir::go2rtc
