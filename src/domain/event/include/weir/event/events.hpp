// What cameras and runners tell: the contents of their events, and how each becomes an Event with its JSON.
//
// The names and types in the JSON are what consumers rely on. It is written straight into text, because a control plane
// carries thousands of events a second: conf with 4 decimals, boxes with 1, seconds with 4, times in UTC with
// milliseconds. Whatever the strings hold, the text is valid JSON on one line. Plain values and functions; any thread.
#pragma once

#include "weir/event/event.hpp"
#include "weir/event/routing.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
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
  Place place;
  std::int64_t frame_id = 0;
  double fps = 0;
  std::vector<SeenObject> detections = {};
  double inference_s = 0;
  double e2e_s = 0;
};

enum class StreamState { connecting, streaming, disconnected };
std::string_view to_string(StreamState state);

// A change of the stream's state; with the last frame's time and age, the periodic summary.
struct StreamStatus {
  std::string event_id;
  WallTime ts;
  StreamState state = StreamState::connecting;
  Place place;
  RunnerId runner;
  std::string shard_id;
  std::optional<double> fps = {};
  std::optional<WallTime> last_frame_ts = {};
  std::optional<double> last_frame_age_s = {};
  std::optional<std::array<int, 2>> size = {};  // width and height of the main stream's picture
  std::optional<double> looked_fps = {}, wanted_fps = {};  // how often it is looked at, and should be
  std::string code = {}, detail = {};  // it streams, but no detector looks (MODEL_ERROR) or too seldom (OVERLOADED)
};

struct StreamErrorEvent {
  std::string event_id;
  WallTime ts;
  Place place;
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

Event to_event(const DetectionEvent& said);
Event to_event(const StreamStatus& said, Kind kind = Kind::status);  // or Kind::summary
Event to_event(const StreamErrorEvent& said);
Event to_event(const RunnerHeartbeat& said);

}  // namespace weir::event
