#include "weir/link/shard.hpp"

#include <algorithm>

namespace weir::link {

namespace {

struct TenureText {
  BootId boot;
  std::int64_t grant = 0;
};
template <class V>
void fields(V& v, TenureText& t) {
  v.required("boot_id", t.boot);
  v.required("grant_version", t.grant, json::range<std::int64_t>(0, 1ll << 53));
}

struct LeaseText {
  CameraId camera;
  std::int64_t version = 0;
  TenureText tenure;
  std::int64_t valid_until_us = 0;
  std::optional<TenureText> adopt;
  std::string after;
};
template <class V>
void fields(V& v, LeaseText& l) {
  v.required("camera_uuid", l.camera);
  v.required("version", l.version, json::range<std::int64_t>(1, 1ll << 53));
  fields(v, l.tenure);
  v.required("valid_until_us", l.valid_until_us, json::range<std::int64_t>(0, 1ll << 53));
  v.optional("adopt", l.adopt);
  v.optional("after", l.after);
  v.rule("after", l.after.empty() || from_iso(l.after) ? "" : "must be a time such as 2026-01-31T09:05:07.123Z");
}

lease::Tenure tenure_of(const TenureText& text) { return {text.boot, {text.grant}}; }

LeaseGrant lease_of(const LeaseText& text) {
  LeaseGrant grant{.camera = text.camera,
                   .version = {text.version},
                   .tenure = tenure_of(text.tenure),
                   .valid_until = Instant(Duration(text.valid_until_us))};
  if (text.adopt) grant.adopt = tenure_of(*text.adopt);
  if (!text.after.empty()) grant.after = from_iso(text.after);
  return grant;
}

struct LeaseList {
  std::vector<LeaseText> items;
};
template <class V>
void fields(V& v, LeaseList& l) {
  v.required("items", l.items);
}

struct ControlPlaneText {
  std::string base_url;
  Secret token;
};
template <class V>
void fields(V& v, ControlPlaneText& c) {
  v.required("base_url", c.base_url, json::length(8, 2048));
  v.optional("token", c.token);
}

struct Telemetry {
  std::optional<double> report_interval_s;
};
template <class V>
void fields(V& v, Telemetry& t) {
  v.optional("report_interval_seconds", t.report_interval_s, json::range(0.1, 3600.0));
}

struct ShardText {
  RunnerId runner;
  std::string shard = "shard-0";
  double max_fps = 6;
  std::optional<ControlPlaneText> cp;
  std::optional<Broker> amqp;
  Telemetry telemetry;
  bool standby = false;
  std::vector<std::string> preload;  // "tflite/", "onnx/yolo11n"
  Secret control_token;
  std::string dials_file, crash_file;
};
template <class V>
void fields(V& v, ShardText& s) {
  v.required("runner_id", s.runner);
  v.optional("shard_id", s.shard, json::length(1, 255));
  v.optional("max_fps", s.max_fps, json::range(0.1, 120.0));
  v.optional("cp", s.cp);
  v.optional("amqp", s.amqp);
  v.optional("telemetry", s.telemetry);
  v.optional("standby", s.standby);
  v.optional("preload", s.preload);
  v.optional("control_token", s.control_token, [](const Secret& token) -> std::string {
    return token.reveal().size() >= 16 ? "" : "must have at least 16 characters";
  });
  v.optional("dials_file", s.dials_file);
  v.optional("crash_file", s.crash_file);
}

// "zones[0].polygon is …" → "sources[2].zones[0].polygon is …"
std::vector<json::Problem> prefixed(const Error& error, const std::string& prefix) {
  std::vector<json::Problem> problems;
  if (const auto* found = error.details.if_contains("fields"); found != nullptr && found->is_array())
    for (const auto& each : found->get_array()) {
      std::string path(each.at("field").as_string());
      problems.push_back({prefix + (path == "body" ? "" : "." + path), std::string(each.at("problem").as_string())});
    }
  if (problems.empty()) problems.push_back({prefix, error.message});
  return problems;
}

void rename(json::object& o, std::string_view from, std::string_view to) {
  if (auto* found = o.if_contains(from); found != nullptr && !o.contains(to)) {
    json::value moved = *found;
    o.erase(from);
    o[to] = std::move(moved);
  }
}

bool is_file(const json::value* url) { return url != nullptr && url->is_string() && url->get_string().starts_with("file:"); }

// How the cluster names the same fields: snapshotUrl, and snapshotInterval in milliseconds.
void fold_snapshot(json::object& o) {
  rename(o, "snapshotUrl", "snapshot_url");
  if (auto* url = o.if_contains("snapshot_url"); url != nullptr && !o.contains("snapshot")) {
    json::object snapshot{{"url", *url}};
    if (auto* ms = o.if_contains("snapshotInterval"); ms != nullptr && ms->is_number())
      snapshot["interval_s"] = ms->to_number<double>() / 1000.0;
    o["snapshot"] = std::move(snapshot);
  }
  o.erase("snapshot_url");
  o.erase("snapshotInterval");
}

// Documents that also configure a manager of workers: where they name the control plane beside `cp`, the worker
// publishes there with their key; the rest is the manager's business.
void fold_manager(json::object& o) {
  json::object cp;
  if (auto* given = o.if_contains("cp"); given != nullptr && given->is_object()) cp = given->get_object();
  for (auto [from, to] : {std::pair{"control_plane_url", "base_url"}, {"api_key", "token"}}) {
    auto* found = o.if_contains(from);
    if (found != nullptr && !cp.contains(to)) cp[to] = *found;
    o.erase(from);
  }
  if (!cp.empty()) o["cp"] = std::move(cp);
  for (const char* name : {"manager_mode", "max_workers", "max_cameras_per_worker", "lease_ttl_seconds",
                           "heartbeat_interval_seconds", "lease_retry_interval_seconds", "database_url",
                           "deployment_group", "deployment_version"})
    o.erase(name);
}

}  // namespace

bool Source::same_dial(const Source& other) const {
  auto snapshot = [](const camera::Config& c) { return c.snapshot ? c.snapshot->url : Secret(); };
  return config.rtsp_url == other.config.rtsp_url && config.substream_url == other.config.substream_url &&
         config.transport == other.config.transport && snapshots == other.snapshots &&
         (!snapshots || (snapshot(config) == snapshot(other.config) &&
                         config.snapshot->interval_s == other.config.snapshot->interval_s));
}

Result<Source> read_source(const json::value& document, double max_fps) {
  if (!document.is_object()) return json::problems_error({{"", "must be an object"}});
  json::object o = document.get_object();
  Source source;
  json::value lease = o.contains("lease") ? o.at("lease") : json::value(nullptr);
  o.erase("lease");
  if (!lease.is_null()) {
    if (lease.is_object() && o.contains("camera_uuid")) lease.get_object()["camera_uuid"] = o.at("camera_uuid");
    auto read = json::read<LeaseText>(lease, json::Unknown::reject);
    if (!read) return json::problems_error(prefixed(read.error(), "lease"));
    source.lease = lease_of(*read);
  }
  o.erase("updated_at");
  o.erase("created_at");
  rename(o, "url", "rtsp_url");
  fold_snapshot(o);
  if (!o.contains("max_fps")) o["max_fps"] = max_fps;
  Secret file;
  if (const json::value* url = o.if_contains("rtsp_url"); is_file(url)) {
    file = Secret(std::string(url->get_string()));
    o["rtsp_url"] = "rtsp://file.invalid/";  // the camera's own rules know no files; put back below
  }
  TRY(config, camera::read_config(o));
  source.config = std::move(config);
  if (!file.empty()) source.config.rtsp_url = file;
  source.snapshots = source.config.rtsp_url.empty() && source.config.snapshot.has_value();
  return source;
}

Result<ShardConfig> read_shard_config(const json::value& document) {
  if (!document.is_object()) return json::problems_error({{"", "must be an object"}});
  json::object rest = document.get_object();
  json::value sources = json::array();
  if (auto* found = rest.if_contains("sources")) sources = *found;
  rest.erase("sources");
  fold_manager(rest);
  json::Context ctx{json::Unknown::reject};
  ShardText text;
  json::read_value(rest, text, "", ctx);
  ShardConfig shard{.runner = text.runner,
                    .shard = text.shard,
                    .max_fps = text.max_fps,
                    .broker = text.amqp,
                    .report_interval_s = text.telemetry.report_interval_s,
                    .standby = text.standby,
                    .control_token = text.control_token,
                    .dials_file = text.dials_file,
                    .crash_file = text.crash_file};
  for (const std::string& name : text.preload) {
    size_t slash = std::min(name.find('/'), name.size());
    shard.preload.push_back({name.substr(0, slash), name.substr(std::min(slash + 1, name.size()))});
  }
  if (text.cp) {
    shard.control_plane = text.cp->base_url;
    shard.token = text.cp->token;
  }
  if (!sources.is_array()) {
    ctx.add("sources", "must be a list");
  } else {
    std::vector<CameraId> seen;
    for (size_t i = 0; i < sources.get_array().size(); ++i) {
      std::string path = fmt::format("sources[{}]", i);
      auto source = read_source(sources.get_array()[i], text.max_fps);
      if (!source) {
        for (auto& problem : prefixed(source.error(), path)) ctx.add(problem.path, problem.what);
        continue;
      }
      if (std::ranges::find(seen, source->config.camera) != seen.end())
        ctx.add(path + ".camera_uuid", "must be unique within the shard");
      seen.push_back(source->config.camera);
      shard.sources.push_back(std::move(*source));
    }
  }
  if (!ctx.problems.empty()) return json::problems_error(ctx.problems);
  return shard;
}

Result<std::vector<LeaseGrant>> read_leases(const json::value& document) {
  TRY(list, json::read<LeaseList>(document));
  std::vector<LeaseGrant> grants;
  for (const LeaseText& text : list.items) grants.push_back(lease_of(text));
  return grants;
}

namespace {
json::object write_broker(const Broker& b) {
  return {{"host", b.host},
          {"port", b.port},
          {"vhost", b.vhost},
          {"user", b.user},
          {"password", b.password.reveal()},
          {"tls", b.tls},
          {"ca_file", b.ca_file},
          {"ex_detect", b.ex_detect},
          {"ex_status", b.ex_status},
          {"ex_control", b.ex_control}};
}
}  // namespace

json::object write_source(const Source& source) {
  json::object out = camera::write_config(source.config, camera::Credentials::shown);
  for (const char* name : {"enabled", "processing"}) out.erase(name);
  if (source.lease) out["lease"] = write_lease(*source.lease);
  return out;
}

json::object write_shard_config(const ShardConfig& shard) {
  json::array sources, preload;
  for (const Source& source : shard.sources) sources.push_back(write_source(source));
  for (const camera::Model& model : shard.preload) preload.push_back(json::value(model.detector + "/" + model.name));
  json::object out{{"runner_id", shard.runner.str()},    {"shard_id", shard.shard},
                   {"max_fps", shard.max_fps},           {"sources", std::move(sources)},
                   {"standby", shard.standby},           {"preload", std::move(preload)},
                   {"dials_file", shard.dials_file},     {"crash_file", shard.crash_file}};
  if (!shard.control_plane.empty())
    out["cp"] = json::object{{"base_url", shard.control_plane}, {"token", shard.token.reveal()}};
  if (shard.broker) out["amqp"] = write_broker(*shard.broker);
  if (!shard.control_token.empty()) out["control_token"] = shard.control_token.reveal();
  if (shard.report_interval_s) out["telemetry"] = json::object{{"report_interval_seconds", *shard.report_interval_s}};
  return out;
}

json::object write_lease(const LeaseGrant& lease) {
  json::object out{{"camera_uuid", lease.camera.str()},
                   {"version", lease.version.n},
                   {"grant_version", lease.tenure.grant.n},
                   {"boot_id", lease.tenure.boot.str()},
                   {"valid_until_us", lease.valid_until.time_since_epoch().count()}};
  if (lease.adopt)
    out["adopt"] = json::object{{"boot_id", lease.adopt->boot.str()}, {"grant_version", lease.adopt->grant.n}};
  if (lease.after) out["after"] = to_iso_exact(*lease.after);
  return out;
}

}  // namespace weir::link
