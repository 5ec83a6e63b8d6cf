// The events that cameras and runners give rise to, and their JSON: the names and types that consumers rely on.
//
// Written straight into text, because a control plane carries thousands of them a second: conf with 4 decimals, boxes
// with 1, seconds with 4, times in UTC with milliseconds. Whatever the strings hold, the text is valid JSON on one line.
// An event's `lease_version` is not known when it is made; `stamped` adds it at the last moment, and the `event_id`
// does not depend on it. Plain values and functions; any thread.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/time.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::event {

struct SeenObject {
  std::string label;                        // "class" in JSON
  double conf = 0;
  std::array<double, 4> bbox_xyxy = {};     // pixels
  std::vector<std::int64_t> zone_ids = {};  // left out where there are none
};

struct DetectionEvent {
  std::string event_id;
  WallTime ts;
  RunnerId runner;
  std::string shard_id;
  TenantId tenant;
  SiteId site;
  CameraId camera;
  std::int64_t frame_id = 0;
  double fps = 0;
  std::vector<SeenObject> detections = {};
  double inference_s = 0;
  double e2e_s = 0;
};

enum class StreamState { connecting, streaming, disconnected };

// An edge, or with the last frame's time and age the periodic summary.
struct StreamStatus {
  std::string event_id;
  WallTime ts;
  StreamState state = StreamState::connecting;
  CameraId camera;
  RunnerId runner;
  std::string shard_id;
  std::optional<double> fps = {};
  std::optional<WallTime> last_frame_ts = {};
  std::optional<double> last_frame_age_s = {};
  std::optional<std::array<int, 2>> size = {};  // width and height of the main stream's picture
  std::optional<double> looked_fps = {}, wanted_fps = {};  // how often it is looked at, and should be
  std::string code = {}, detail = {};  // it streams, but MODEL_ERROR: nobody looks at it; OVERLOADED: too seldom
};

struct StreamErrorEvent {
  std::string event_id;
  WallTime ts;
  CameraId camera;
  RunnerId runner;
  std::string code;    // RTSP_AUTH_FAILED …
  std::string detail;  // never a URL or a credential
  std::int64_t retry_in_ms = 0;
};

struct RunnerHeartbeat {
  std::string event_id;
  WallTime ts;
  RunnerId runner;
  int streams_owned = 0;
  int shards = 0;
  double cpu_pct = 0;
  double mem_mb = 0;
};

std::string to_json(const DetectionEvent& event);
std::string to_json(const StreamStatus& event);
std::string to_json(const StreamErrorEvent& event);
std::string to_json(const RunnerHeartbeat& event);

// The payload, a JSON object without a lease_version, with one.
std::string stamped(std::string payload, std::int64_t lease_version);

// An id that sorts by its time, so that a store's index of recent ids stays small and warm. `random` makes it unique:
// at least 64 bits as hex.
std::string make_event_id(WallTime now, std::string_view random);

}  // namespace weir::event
