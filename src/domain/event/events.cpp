#include "weir/event/events.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace weir::event {

namespace {

void append_quoted(std::string& out, std::string_view text) {
  bool valid = valid_utf8(text);
  out += '"';
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", c);
    } else {
      out += c >= 0x80 && !valid ? '?' : static_cast<char>(c);
    }
  }
  out += '"';
}

// Writes 0.89, 12 or 0: never 1E2, and never NaN or infinity, which JSON cannot express.
void append_number(std::string& out, double value, int decimals) {
  size_t begin = out.size();
  fmt::format_to(std::back_inserter(out), "{:.{}f}", std::isfinite(value) ? value : 0.0, decimals);
  while (out.back() == '0') out.pop_back();
  if (out.back() == '.') out.pop_back();
  if (std::string_view(out).substr(begin) == "-0") out.erase(begin, 1);
}

// The members of an object in their order.
class Object {
 public:
  explicit Object(std::string& out) : out_(out) { out_ += '{'; }
  Object& text(std::string_view name, std::string_view value) {
    append_quoted(key(name), value);
    return *this;
  }
  Object& whole(std::string_view name, std::int64_t value) {
    fmt::format_to(std::back_inserter(key(name)), "{}", value);
    return *this;
  }
  Object& number(std::string_view name, double value, int decimals) {
    append_number(key(name), value, decimals);
    return *this;
  }
  std::string& key(std::string_view name) {
    if (out_.back() != '{') out_ += ',';
    out_ += '"';
    out_ += name;
    out_ += "\":";
    return out_;
  }
  void end() { out_ += '}'; }

 private:
  std::string& out_;
};

template <class List, class Append>
void append_list(std::string& out, const List& list, Append append) {
  out += '[';
  const char* separator = "";
  for (const auto& each : list) {
    out += std::exchange(separator, ",");
    append(each);
  }
  out += ']';
}

void append_object(std::string& out, const SeenObject& seen) {
  Object object(out);
  object.text("class", seen.label).number("conf", seen.conf, 4);
  append_list(object.key("bbox_xyxy"), seen.bbox_xyxy, [&](double side) { append_number(out, side, 1); });
  if (!seen.zone_ids.empty())
    append_list(object.key("zone_ids"), seen.zone_ids,
                [&](std::int64_t id) { fmt::format_to(std::back_inserter(out), "{}", id); });
  object.end();
}

std::string to_json(const DetectionEvent& event) {
  std::string out;
  out.reserve(384 + 96 * event.detections.size());
  Object object(out);
  object.text("ts", to_iso(event.ts))
      .text("runner_id", event.runner.str())
      .text("shard_id", event.shard_id)
      .text("tenant_id", event.place.tenant.str())
      .text("site_id", event.place.site.str())
      .text("camera_uuid", event.place.camera.str())
      .whole("frame_id", event.frame_id)
      .number("fps", event.fps, 2);
  append_list(object.key("detections"), event.detections, [&](const SeenObject& seen) { append_object(out, seen); });
  Object(object.key("latency")).number("inference_s", event.inference_s, 4).number("e2e_s", event.e2e_s, 4).end();
  object.text("event_id", event.event_id).end();
  return out;
}

std::string to_json(const StreamStatus& event) {
  std::string out;
  Object object(out);
  object.text("type", "stream.status")
      .text("state", to_string(event.state))
      .text("camera_uuid", event.place.camera.str())
      .text("runner_id", event.runner.str())
      .text("shard_id", event.shard_id);
  if (event.fps) object.number("fps", *event.fps, 2);
  if (event.last_frame_ts) object.text("last_frame_ts", to_iso(*event.last_frame_ts));
  if (event.last_frame_age_s) object.number("last_frame_age_s", *event.last_frame_age_s, 4);
  if (event.size) object.whole("width", (*event.size)[0]).whole("height", (*event.size)[1]);
  if (event.looked_fps) object.number("looked_fps", *event.looked_fps, 2);
  if (event.wanted_fps) object.number("wanted_fps", *event.wanted_fps, 2);
  if (!event.code.empty()) object.text("code", event.code).text("detail", event.detail);
  object.text("ts", to_iso(event.ts)).text("event_id", event.event_id).end();
  return out;
}

std::string to_json(const StreamErrorEvent& event) {
  std::string out;
  Object(out)
      .text("type", "stream.error")
      .text("camera_uuid", event.place.camera.str())
      .text("runner_id", event.runner.str())
      .text("code", event.code)
      .text("detail", event.detail)
      .whole("retry_in_ms", event.retry_in_ms)
      .text("ts", to_iso(event.ts))
      .text("event_id", event.event_id)
      .end();
  return out;
}

std::string to_json(const RunnerHeartbeat& event) {
  std::string out;
  Object(out)
      .text("type", "runner.heartbeat")
      .text("runner_id", event.runner.str())
      .whole("streams_owned", event.streams_owned)
      .whole("shards", event.shards)
      .number("cpu_pct", event.cpu_pct, 1)
      .number("mem_mb", event.mem_mb, 1)
      .text("ts", to_iso(event.ts))
      .text("event_id", event.event_id)
      .end();
  return out;
}

}  // namespace

std::string_view to_string(StreamState state) {
  switch (state) {
    case StreamState::connecting: return "CONNECTING";
    case StreamState::streaming: return "STREAMING";
    case StreamState::disconnected: return "DISCONNECTED";
  }
  return "";
}

Event to_event(const DetectionEvent& said) {
  return {std::string(kDetectionsTopic), detections_key(said.place), said.event_id, to_json(said), Kind::detection,
          said.ts};
}

Event to_event(const StreamStatus& said, Kind kind) {
  return {std::string(kStatusTopic), status_key(said.place), said.event_id, to_json(said), kind, said.ts};
}

Event to_event(const StreamErrorEvent& said) {
  return {std::string(kStatusTopic), error_key(said.place), said.event_id, to_json(said), Kind::error, said.ts};
}

Event to_event(const RunnerHeartbeat& said) {
  return {std::string(kStatusTopic), heartbeat_key(said.runner), said.event_id, to_json(said), {}, said.ts};
}

}  // namespace weir::event
