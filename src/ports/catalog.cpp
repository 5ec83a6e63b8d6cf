#include "weir/ports/catalog.hpp"

#include "weir/base/log.hpp"

#include <mutex>
#include <set>

namespace weir {

namespace {
struct About {
  Runner& runner;
};
template <class V>
void fields(V& v, About& a) {
  v.optional("deployment_group", a.runner.deployment_group);
  v.optional("deployment_version", a.runner.deployment_version);
  v.optional("host", a.runner.host);
  v.optional("port", a.runner.port);
  v.optional("metrics_port", a.runner.metrics_port);
  v.optional("capabilities", a.runner.capabilities);
  v.optional("said_capacity", a.runner.said_capacity);
  v.optional("capacity_pinned", a.runner.capacity_pinned);
  v.optional("models", a.runner.models);
}
}  // namespace

boost::json::object write_about(const Runner& runner) {
  json::Writer writer;
  About about{const_cast<Runner&>(runner)};  // a Writer only reads
  fields(writer, about);
  return writer.take();
}

void read_about(const boost::json::value& about, Runner& runner) {
  if (!about.is_object()) return;
  json::Context ignored;
  json::Reader reader(about.get_object(), "", ignored);
  About into{runner};
  fields(reader, into);
}

Runner changed(Runner runner, const RunnerChange& change) {
  if (change.cordoned) runner.cordoned = *change.cordoned;
  if (change.drain) runner.drain = *change.drain;
  if (change.unpin && runner.said_capacity != 0) runner.capacity = runner.said_capacity;
  if (change.capacity) runner.capacity = *change.capacity;
  if (change.unpin || change.capacity) runner.capacity_pinned = change.capacity.has_value();
  return runner;
}

void keep_orders(const Runner& before, Runner& again) {
  again.cordoned = before.cordoned;
  again.drain = before.drain;
  // Rows of an earlier Weir do not say who set the capacity: it was an operator where the runner said another one.
  again.capacity_pinned = before.capacity_pinned || (before.said_capacity != 0 && before.capacity != before.said_capacity);
  if (again.capacity_pinned) again.capacity = before.capacity;
}

Status may_register_again(const Runner& before, const Runner& again, const TenantId& caller) {
  bool of_another = !again.tenant.empty() && !before.tenant.empty() && before.tenant != again.tenant;
  bool of_all = !caller.empty() && before.tenant.empty();
  return of_another || of_all ? Status(exists_already("runner", "runner_id")) : ok();
}

Result<Runner> commanded(Result<Runner> seen, const TenantId& caller) {
  if (seen && !caller.empty() && seen->tenant != caller)
    return Error{Errc::forbidden, "tenant_token", "this runner serves all tenants: a token bound to one cannot command it"};
  return seen;
}

DrainMode drain_mode(std::string_view stored) {
  for (const auto& [mode, name] : kDrainModeNames)
    if (stored == name) return mode;
  return DrainMode::none;
}

CameraRecord edited(const CameraRecord& present, camera::Config next, WallTime at) {
  camera::Config before = present.config;
  before.enabled = next.enabled;
  CameraRecord record = present;
  record.updated_at = at;
  if (camera::write_config(before, camera::Credentials::shown) !=
      camera::write_config(next, camera::Credentials::shown)) {
    // Above the last one also where the clock was set back: a name is never used twice.
    record.configured_at = std::max(at, present.configured_at + Duration(1));
    record.crashes = 0;
  }
  record.config = std::move(next);
  return record;
}

Result<KeptConfig> keep(const camera::Config& config) {
  std::string text = json::to_text(camera::write_config(config, camera::Credentials::shown));
  TRY(parsed, json::parse_text(text));
  TRY(read, camera::read_config(parsed));
  return KeptConfig{std::move(text), std::move(read)};
}

Result<camera::Config> read_kept(std::string_view text) {
  auto parsed = json::parse_text(text);
  auto config = parsed ? camera::read_config(*parsed) : Result<camera::Config>(parsed.error());
  if (config) return config;
  return Error{Errc::unprocessable, std::string(kBadStoredConfig),
               fmt::format("the stored configuration of this camera cannot be read: {}; remove it and add it again, or "
                           "use the version of Weir that wrote it", config.error().message)};
}

void note_left_out(const CameraId& camera, const Error& why) {
  static std::mutex mutex;
  static std::set<CameraId> noted;
  std::lock_guard guard(mutex);
  if (noted.size() < 10'000 && noted.insert(camera).second)
    log::error("camera.unreadable", why.message).with("camera_uuid", camera);
}

Error no_such(std::string_view what, std::string_view field) {
  return {Errc::not_found, fmt::format("{}_not_found", what), fmt::format("there is no such {}", what),
          {{"field", field}}};
}

Error exists_already(std::string_view what, std::string_view field) {
  return {Errc::conflict, fmt::format("{}_exists", what), fmt::format("this {} is taken", field), {{"field", field}}};
}

Error not_empty(std::string_view what, std::string_view because) {
  return {Errc::unprocessable, fmt::format("{}_not_empty", what), fmt::format("the {} still has {}", what, because)};
}

}  // namespace weir
