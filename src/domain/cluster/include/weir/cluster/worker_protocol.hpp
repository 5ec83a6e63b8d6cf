// Worker protocol: what the cluster's master and a detection worker say to each other over a WebSocket.
//
// Each is one JSON object with a `type`. The master's are commands: what belongs to them stands in `payload`. The
// worker's are messages: what belongs to them stands beside `type`. docs/cluster.md shows every one, so that a worker
// can be written in any language. This is the one place that writes and reads them, for both sides. Unknown fields are
// ignored; an error names each wrong field with its path. A state report whose entry about one camera cannot be read is
// still a report: the entry is left out and its problem is kept. Plain values and pure functions; any thread.
#pragma once

#include "weir/cluster/subscription.hpp"

#include <variant>

namespace weir::cluster {

// ---- the master's commands ----
struct Subscribe {
  Identifier subscription;
  Secret rtsp_url;
  std::optional<Secret> snapshot_url = {};
  std::optional<std::chrono::milliseconds> snapshot_every = {};
  Secret model_url;  // signed: whoever has it can fetch the model for a while
  std::string model_name = {};
  std::int64_t model_id = 0;
  std::optional<Crop> crop = {};
  friend bool operator==(const Subscribe&, const Subscribe&) = default;
};
struct Unsubscribe {
  Identifier subscription;
  friend bool operator==(const Unsubscribe&, const Unsubscribe&) = default;
};
struct RequestState {
  friend bool operator==(const RequestState&, const RequestState&) = default;
};
struct SetSessionId {
  std::string display;
  std::optional<std::int64_t> session = {};  // none: the display has no session any more
  friend bool operator==(const SetSessionId&, const SetSessionId&) = default;
};
struct PatchSessionResult {
  std::int64_t session = 0;
  bool success = false;
  std::optional<std::string> message = {};
  friend bool operator==(const PatchSessionResult&, const PatchSessionResult&) = default;
};
using Command = std::variant<Subscribe, Unsubscribe, RequestState, SetSessionId, PatchSessionResult>;

// ---- the worker's messages ----
struct Detection {
  std::optional<std::string> car_model = {}, car_brand = {};
  std::optional<std::int64_t> car_year = {};
  std::optional<std::string> body_type = {}, license_plate_text = {}, license_plate_type = {};
  friend bool operator==(const Detection&, const Detection&) = default;
};
// Something that was seen, with its place in the picture in pixels: x1, y1, x2, y2.
struct Box {
  std::string label;
  double score = 0;
  std::array<double, 4> box = {};
  friend bool operator==(const Box&, const Box&) = default;
};
struct ImageDetection {
  Identifier subscription;
  WallTime timestamp{};
  Detection detection = {};
  std::int64_t model_id = 0;
  std::string model_name = {};
  std::vector<Box> boxes = {};  // Weir's own workers send them; others need not
  friend bool operator==(const ImageDetection&, const ImageDetection&) = default;
};
struct CameraConnection {
  Identifier subscription;
  std::int64_t model_id = 0;
  std::string model_name = {};
  bool online = true;  // the worker has the camera's stream
  std::optional<Crop> crop = {};
  friend bool operator==(const CameraConnection&, const CameraConnection&) = default;
};
struct StateReport {
  std::optional<double> cpu_percent = {}, memory_percent = {}, gpu_percent = {}, gpu_memory_percent = {};
  std::vector<CameraConnection> cameras = {};
  std::vector<json::Problem> problems = {};  // of the entries that could not be read
};
struct PatchSession {
  std::int64_t session = 0;
  json::value data = nullptr;
  friend bool operator==(const PatchSession&, const PatchSession&) = default;
};
using Message = std::variant<ImageDetection, StateReport, PatchSession>;

// The command that has a worker run a subscription with this model.
Subscribe subscribe(const DesiredSubscription& desired, Secret model_url);

json::object write_command(const Command& command);
Result<Command> read_command(std::string_view text);

json::object write_message(const Message& message);
// A worker's clock and how it writes times are its own: a text that is no time is replaced by `received`.
Result<Message> read_message(std::string_view text, WallTime received);

// What products get of a detection, and what goes to Redis: the message without its `type`.
json::object write_detection(const ImageDetection& detection);
Result<ImageDetection> read_detection(const json::value& v, const std::string& path);

}  // namespace weir::cluster
