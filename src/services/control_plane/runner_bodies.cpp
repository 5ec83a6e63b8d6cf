#include "runner_bodies.hpp"

#include "request.hpp"

#include <algorithm>

namespace weir::control_plane {

namespace {

constexpr int kCapacityMax = 100'000;
constexpr size_t kMetricsBytesMax = 16 << 10;

// A runner's own time stamp: kept as the runner wrote it, so it may be any text that can be shown.
std::string stamp_problem(const std::string& text) {
  bool sane = !text.empty() && text.size() <= 64 && name_problem(text).empty();
  return sane ? "" : "must have 1 to 64 bytes without control characters";
}

std::string capabilities_problem(const std::vector<std::string>& all) {
  bool sane = all.size() <= 64 && std::ranges::all_of(all, [](const std::string& each) {
                return !each.empty() && each.size() <= 64 && name_problem(each).empty();
              });
  return sane ? "" : "must hold at most 64 words of 1 to 64 bytes without control characters";
}

std::string metrics_problem(const json::object& metrics) {
  if (json::to_text(metrics).size() <= kMetricsBytesMax) return "";
  return fmt::format("must have at most {} bytes", kMetricsBytesMax);
}

}  // namespace

struct Registration {
  Runner runner;
  std::optional<int> capacity_streams;
};
template <class V>
void fields(V& v, Registration& r) {
  v.required("runner_id", r.runner.id);
  v.optional("tenant_id", r.runner.tenant);
  v.optional("site_id", r.runner.site);
  v.optional("boot_id", r.runner.boot);
  v.optional("deployment_group", r.runner.deployment.group, name_problem);
  v.optional("deployment_version", r.runner.deployment.version, name_problem);
  v.optional("host", r.runner.address.host, name_problem);
  v.optional("port", r.runner.address.port, json::range(0, 65535));
  v.optional("metrics_port", r.runner.address.metrics_port, json::range(0, 65535));
  v.optional("capacity", r.runner.capacity, json::range(0, kCapacityMax));
  v.optional("capacity_streams", r.capacity_streams, json::range(0, kCapacityMax));
  v.optional("capabilities", r.runner.capabilities, capabilities_problem);
  v.optional("models", r.runner.models, models_problem);
}

// A camera that the runner has and that does not stream, for a reason on the runner's side.
struct Waiting {
  CameraId camera;
  std::string reason;
  double for_s = 0;
};
std::string reason_problem(const std::string& text) {
  bool known = text == "budget" || text == "not_answering";
  return known ? "" : "must be one of: budget, not_answering";
}
template <class V>
void fields(V& v, Waiting& w) {
  v.required("camera_uuid", w.camera);
  v.required("reason", w.reason, reason_problem);
  v.optional("for_s", w.for_s, json::range(0.0, 1e9));
}
std::string waiting_problem(const std::vector<Waiting>& all) { return all.size() > 1000 ? "must hold at most 1000" : ""; }

struct Beat {
  RunnerId runner;
  BootId boot;
  std::optional<int> streams_owned;
  std::optional<int> shards;
  std::optional<double> cpu_pct;
  std::optional<double> mem_mb;
  std::optional<std::string> ts;
  bool draining = false;
  std::optional<int> cameras_behind;
  std::string why_not_acquiring = {};
  std::vector<Waiting> waiting = {};
  std::optional<json::object> metrics;
};
template <class V>
void fields(V& v, Beat& b) {
  v.optional("runner_id", b.runner);
  v.optional("boot_id", b.boot);
  v.optional("streams_owned", b.streams_owned, json::range(0, kCapacityMax));
  if (!b.streams_owned) v.optional("current_load", b.streams_owned, json::range(0, kCapacityMax));
  v.optional("shards", b.shards, json::range(0, kCapacityMax));
  v.optional("cpu_pct", b.cpu_pct, json::range(0.0, 1e6));
  v.optional("mem_mb", b.mem_mb, json::range(0.0, 1e9));
  v.optional("ts", b.ts, stamp_problem);
  v.optional("draining", b.draining);
  v.optional("cameras_behind", b.cameras_behind, json::range(0, kCapacityMax));
  v.optional("why_not_acquiring", b.why_not_acquiring, name_problem);
  v.optional("waiting", b.waiting, waiting_problem);
  v.optional("metrics", b.metrics, metrics_problem);
}

template <class V>
void fields(V& v, RunnerChange& c) {
  v.optional("cordoned", c.cordoned);
  v.optional("drain_mode", c.drain);
  v.optional("capacity_streams", c.capacity, json::range(1, kCapacityMax));  // to take none is a cordon
}

template <class V>
void fields(V& v, Will& w) {
  v.required("boot_id", w.boot);
  v.optional("will", w.secret);
}

Result<Runner> read_registration(const json::value& body) {
  TRY(given, json::read<Registration>(body));
  if (given.capacity_streams) given.runner.capacity = *given.capacity_streams;
  return std::move(given.runner);
}

Result<Heartbeat> read_heartbeat(const json::value& body) {
  TRY(beat, json::read<Beat>(body));
  Heartbeat out{beat.runner, beat.boot, beat.streams_owned.value_or(0), beat.draining};
  if (beat.streams_owned) out.kept["streams_owned"] = *beat.streams_owned;
  if (beat.shards) out.kept["shards"] = *beat.shards;
  if (beat.cpu_pct) out.kept["cpu_pct"] = *beat.cpu_pct;
  if (beat.mem_mb) out.kept["mem_mb"] = *beat.mem_mb;
  if (beat.ts) out.kept["ts"] = *beat.ts;
  if (beat.cameras_behind) out.kept["cameras_behind"] = *beat.cameras_behind;
  if (!beat.why_not_acquiring.empty()) out.kept["why_not_acquiring"] = beat.why_not_acquiring;
  if (!beat.waiting.empty()) out.kept["waiting"] = json::write_value(beat.waiting);
  if (beat.metrics) out.kept["metrics"] = *std::move(beat.metrics);
  return out;
}

Result<RunnerChange> read_runner_change(const json::value& body) {
  json::Context ctx{json::Unknown::reject};
  RunnerChange change;
  if (!body.is_object()) return bad_field("body", "must be an object");
  json::Reader reader(body.get_object(), "", ctx);
  fields(reader, change);
  reader.finish();
  if (!ctx.problems.empty()) return json::problems_error(ctx.problems);
  const json::value* capacity = body.get_object().if_contains("capacity_streams");
  change.unpin = capacity != nullptr && capacity->is_null();
  if (!change.cordoned && !change.drain && !change.capacity && !change.unpin)
    return bad_field("body", "must hold at least one of: cordoned, drain_mode, capacity_streams");
  return change;
}

Result<Will> read_will(const json::value& body) { return json::read<Will>(body); }

}  // namespace weir::control_plane
