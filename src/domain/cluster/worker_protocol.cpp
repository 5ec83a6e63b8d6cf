#include "weir/cluster/worker_protocol.hpp"

#include "wire.hpp"

namespace weir::cluster {

namespace {

constexpr std::int64_t kNumberMax = std::int64_t{1} << 53;  // what a JSON number holds exactly, in every language
constexpr double kLatestMs = 4'102'444'800'000;             // the year 2100

auto whole() { return json::range<std::int64_t>(-kNumberMax, kNumberMax); }
auto some_url() {
  return [](const Secret& url) -> std::string {
    return !url.empty() && url.reveal().size() <= 8192 ? "" : "must have 1 to 8192 characters";
  };
}

// ISO-8601 in UTC as Weir writes it, with an offset of +00:00, or without any; or milliseconds since 1970.
std::optional<WallTime> worker_time(const json::value& v) {
  if (v.is_number()) {
    double ms = v.to_number<double>();
    if (!(ms >= 0 && ms <= kLatestMs)) return std::nullopt;
    return WallTime(Duration(static_cast<std::int64_t>(ms * 1000)));
  }
  if (!v.is_string()) return std::nullopt;
  std::string text(v.get_string());
  if (text.ends_with("+00:00")) text.resize(text.size() - 6);
  if (!text.ends_with('Z')) text += 'Z';
  return from_iso(text);
}

}  // namespace

template <class V>
void fields(V& v, Subscribe& s) {
  v.required("subscriptionIdentifier", s.subscription);
  v.required("rtspUrl", s.rtsp_url, some_url());
  v.optional("snapshotUrl", s.snapshot_url, some_url());
  wire::milliseconds(v, "snapshotInterval", s.snapshot_every);
  v.required("modelUrl", s.model_url, some_url());
  v.required("modelName", s.model_name);
  v.required("modelId", s.model_id, whole());
  wire::crop(v, s.crop);
}
template <class V>
void fields(V& v, Unsubscribe& u) {
  v.required("subscriptionIdentifier", u.subscription);
}
template <class V>
void fields(V& v, SetSessionId& s) {
  v.required("displayIdentifier", s.display, json::length(1, 255));
  wire::nullable(v, "sessionId", s.session);
}
template <class V>
void fields(V& v, PatchSessionResult& p) {
  v.required("sessionId", p.session, whole());
  v.required("success", p.success);
  v.optional("message", p.message);
}

template <class V>
void fields(V& v, Detection& d) {
  v.optional("carModel", d.car_model);
  v.optional("carBrand", d.car_brand);
  v.optional("carYear", d.car_year);
  v.optional("bodyType", d.body_type);
  v.optional("licensePlateText", d.license_plate_text);
  v.optional("licensePlateType", d.license_plate_type);
}
template <class V>
void fields(V& v, Box& b) {
  v.required("label", b.label);
  v.required("score", b.score);
  v.required("box", b.box);
}
template <class V>
void fields(V& v, CameraConnection& c) {
  v.required("subscriptionIdentifier", c.subscription);
  v.required("modelId", c.model_id, whole());
  v.optional("modelName", c.model_name);
  v.optional("online", c.online);
  wire::crop(v, c.crop);
}

namespace {

// The payload of detection results: {detection, modelId, modelName, boxes?}.
struct Data {
  Detection detection;
  std::int64_t model_id = 0;
  std::string model_name;
  std::vector<Box> boxes;
};
template <class V>
void fields(V& v, Data& d) {
  v.optional("detection", d.detection);
  v.required("modelId", d.model_id, whole());
  v.required("modelName", d.model_name);
  if (V::reading || !d.boxes.empty()) v.optional("boxes", d.boxes);
}

struct DetectionText {
  Identifier subscription;
  Data data;
};
template <class V>
void fields(V& v, DetectionText& d) {
  v.required("subscriptionIdentifier", d.subscription);
  v.required("data", d.data);
}

struct Usage {
  std::optional<double> cpu, memory, gpu, gpu_memory;
};
template <class V>
void fields(V& v, Usage& u) {
  wire::nullable(v, "cpuUsage", u.cpu);
  wire::nullable(v, "memoryUsage", u.memory);
  v.optional("gpuUsage", u.gpu);
  v.optional("gpuMemoryUsage", u.gpu_memory);
}

struct SessionText {
  std::int64_t session = 0;
};
template <class V>
void fields(V& v, SessionText& s) {
  v.required("sessionId", s.session, whole());
}

struct Typed {
  std::string type;
  json::object all;
};
Result<Typed> read_typed(std::string_view text) {
  TRY(parsed, json::parse_text(text));
  if (!parsed.is_object()) return json::problems_error({{"body", "must be an object"}});
  const json::value* type = parsed.get_object().if_contains("type");
  if (type == nullptr || type->is_null()) return json::problems_error({{"type", "is required"}});
  if (!type->is_string()) return json::problems_error({{"type", "must be a string"}});
  return Typed{std::string(type->get_string()), std::move(parsed.get_object())};
}

template <class T>
Result<Command> read_payload(const json::object& all) {
  const json::value* payload = all.if_contains("payload");
  if (payload == nullptr) return json::problems_error({{"payload", "is required"}});
  json::Context ctx;
  T out{};
  json::read_value(*payload, out, "payload", ctx);
  if (!ctx.problems.empty()) return json::problems_error(ctx.problems);
  return Command(std::move(out));
}

template <class T>
void read_from(const json::object& all, T& out, const std::string& path, json::Context& ctx) {
  json::Reader reader(all, path, ctx);
  fields(reader, out);
}

void read_cameras(const json::object& all, StateReport& out, json::Context& ctx) {
  const json::value* list = all.if_contains("cameraConnections");
  if (list == nullptr || list->is_null()) return ctx.add("cameraConnections", "is required");
  if (!list->is_array()) return ctx.add("cameraConnections", "must be a list");
  const json::array& entries = list->get_array();
  for (size_t n = 0; n < entries.size(); ++n) {
    json::Context own;
    CameraConnection camera;
    json::read_value(entries[n], camera, fmt::format("cameraConnections[{}]", n), own);
    if (own.problems.empty()) out.cameras.push_back(std::move(camera));
    else if (out.problems.size() < 20) out.problems.push_back(std::move(own.problems.front()));
  }
}

Result<StateReport> read_report(const json::object& all) {
  json::Context ctx;
  Usage usage;
  StateReport out;
  read_from(all, usage, "", ctx);
  read_cameras(all, out, ctx);
  if (!ctx.problems.empty()) return json::problems_error(ctx.problems);
  out.cpu_percent = usage.cpu;
  out.memory_percent = usage.memory;
  out.gpu_percent = usage.gpu;
  out.gpu_memory_percent = usage.gpu_memory;
  return out;
}

Result<PatchSession> read_patch(const json::object& all) {
  json::Context ctx;
  SessionText session;
  read_from(all, session, "", ctx);
  if (!ctx.problems.empty()) return json::problems_error(ctx.problems);
  const json::value* data = all.if_contains("data");
  return PatchSession{session.session, data == nullptr ? json::value(nullptr) : *data};
}

json::object report_of(const StateReport& report) {
  json::Writer writer;
  Usage usage{report.cpu_percent, report.memory_percent, report.gpu_percent, report.gpu_memory_percent};
  fields(writer, usage);
  json::object out = writer.take();
  out["cameraConnections"] = json::write_value(report.cameras);
  return out;
}

// `type` stands first, as in the examples of docs/cluster.md.
json::object with_type(std::string_view type, json::object rest) {
  json::object out{{"type", type}};
  for (auto& member : rest) out[member.key()] = std::move(member.value());
  return out;
}

template <class... F>
struct Each : F... {
  using F::operator()...;
};

}  // namespace

Subscribe subscribe(const DesiredSubscription& desired, Secret model_url) {
  return {.subscription = desired.id, .rtsp_url = desired.rtsp_url, .snapshot_url = desired.snapshot_url,
          .snapshot_every = desired.snapshot_every, .model_url = std::move(model_url),
          .model_name = desired.model_name, .model_id = desired.model_id, .crop = desired.crop};
}

json::object write_command(const Command& command) {
  auto with = [](std::string_view type, const auto& payload) {
    return json::object{{"type", type}, {"payload", json::write_value(payload)}};
  };
  return std::visit(Each{[&](const Subscribe& c) { return with("subscribe", c); },
                         [&](const Unsubscribe& c) { return with("unsubscribe", c); },
                         [&](const RequestState&) { return json::object{{"type", "requestState"}}; },
                         [&](const SetSessionId& c) { return with("setSessionId", c); },
                         [&](const PatchSessionResult& c) { return with("patchSessionResult", c); }},
                    command);
}

Result<Command> read_command(std::string_view text) {
  TRY(typed, read_typed(text));
  const auto& [type, all] = typed;
  if (type == "subscribe") return read_payload<Subscribe>(all);
  if (type == "unsubscribe") return read_payload<Unsubscribe>(all);
  if (type == "requestState") return Command(RequestState{});
  if (type == "setSessionId") return read_payload<SetSessionId>(all);
  if (type == "patchSessionResult") return read_payload<PatchSessionResult>(all);
  return json::problems_error({{"type", "must be one of: subscribe, unsubscribe, requestState, setSessionId, "
                                        "patchSessionResult"}});
}

json::object write_detection(const ImageDetection& d) {
  Data data{d.detection, d.model_id, d.model_name, d.boxes};
  return {{"subscriptionIdentifier", d.subscription.text()},
          {"timestamp", to_iso(d.timestamp)},
          {"data", json::write_value(data)}};
}

json::object write_message(const Message& message) {
  return std::visit(Each{[](const ImageDetection& m) { return with_type("imageDetection", write_detection(m)); },
                         [](const StateReport& m) { return with_type("stateReport", report_of(m)); },
                         [](const PatchSession& m) {
                           return json::object{{"type", "patchSession"}, {"sessionId", m.session}, {"data", m.data}};
                         }},
                    message);
}

namespace {

Result<ImageDetection> detection_of(const json::object& all, const std::string& path,
                                    std::optional<WallTime> received) {
  json::Context ctx;
  DetectionText text;
  read_from(all, text, path, ctx);
  std::string at = path.empty() ? "timestamp" : path + ".timestamp";
  const json::value* time = all.if_contains("timestamp");
  std::optional<WallTime> timestamp = received;
  if (time == nullptr || time->is_null()) ctx.add(at, "is required");
  else if (auto read = worker_time(*time)) timestamp = read;
  else if (!received || !(time->is_string() || time->is_number()))
    ctx.add(at, "must be a time such as 2026-01-31T09:05:07.123Z");
  if (!ctx.problems.empty()) return json::problems_error(ctx.problems);
  return ImageDetection{.subscription = std::move(text.subscription),
                        .timestamp = *timestamp,
                        .detection = std::move(text.data.detection),
                        .model_id = text.data.model_id,
                        .model_name = std::move(text.data.model_name),
                        .boxes = std::move(text.data.boxes)};
}

}  // namespace

Result<ImageDetection> read_detection(const json::value& v, const std::string& path) {
  if (!v.is_object()) return json::problems_error({{path, "must be an object"}});
  return detection_of(v.get_object(), path, std::nullopt);
}

Result<Message> read_message(std::string_view text, WallTime received) {
  TRY(typed, read_typed(text));
  const auto& [type, all] = typed;
  auto message = [](auto read) -> Result<Message> {
    if (!read) return std::move(read).error();
    return Message(*std::move(read));
  };
  if (type == "imageDetection") return message(detection_of(all, "", received));
  if (type == "stateReport") return message(read_report(all));
  if (type == "patchSession") return message(read_patch(all));
  return json::problems_error({{"type", "must be one of: imageDetection, stateReport, patchSession"}});
}

}  // namespace weir::cluster
