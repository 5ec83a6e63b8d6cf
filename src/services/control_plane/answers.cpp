#include "answers.hpp"

#include "announcer.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/log.hpp"
#include "weir/net/token.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>

namespace weir::control_plane {

json::value number(double value) {
  if (std::abs(value) < 1e15 && value == std::floor(value)) return static_cast<std::int64_t>(value);
  return value;
}

namespace {
json::value when(WallTime at) { return at == WallTime{} ? json::value(nullptr) : json::value(to_iso(at)); }
}  // namespace

json::object write_tenant(const Tenant& tenant) {
  return {{"tenant_id", tenant.id.str()}, {"name", tenant.name}, {"created_at", to_iso(tenant.created_at)}};
}

json::object write_budget(const Site& site, WallTime at) {
  return {{"site_id", site.id.str()},
          {"tokens", number(site.budget.tokens)},
          {"capacity", number(site.budget.capacity)},
          {"refill_rate", number(site.budget.refill_per_min)},
          {"updated_at", to_iso(at)}};
}

json::object write_site(const Site& site, WallTime at) {
  json::object out = write_budget(site, at);
  out["tenant_id"] = site.tenant.str();
  out["name"] = site.name;
  out["created_at"] = to_iso(site.created_at);
  return out;
}

json::object write_camera(const CameraRecord& record, camera::Credentials credentials) {
  json::object out = camera::write_config(record.config, credentials);
  out["created_at"] = to_iso(record.created_at);
  out["updated_at"] = to_iso(record.updated_at);
  out["config_version"] = config_version(record);
  out["zone_version"] = zone_version(record.config);
  if (credentials == camera::Credentials::shown) out["crashes"] = record.crashes;
  return out;
}

json::object write_zone_of(const CameraId& camera, const camera::Zone& zone) {
  json::object out = camera::write_zone(zone);
  out["camera_uuid"] = camera.str();
  return out;
}

std::string zone_version(const camera::Config& config) {
  std::vector<const camera::Zone*> zones;
  for (const camera::Zone& zone : config.zones) zones.push_back(&zone);
  std::ranges::sort(zones, {}, &camera::Zone::zone_id);
  json::array out;
  for (const camera::Zone* zone : zones) {
    json::object written = camera::write_zone(*zone), sorted;
    std::map<std::string, json::value> by_name;
    for (auto& member : written) by_name.emplace(member.key(), std::move(member.value()));
    for (auto& [name, value] : by_name) sorted[name] = std::move(value);
    out.push_back(std::move(sorted));
  }
  return net::sha256_hex(json::to_text(json::value(std::move(out))));
}

json::object write_runner(const Runner& runner) {
  json::object out{{"runner_id", runner.id.str()},
                   {"status", runner.live ? "active" : "silent"},
                   {"cordoned", runner.cordoned},
                   {"drain_mode", json::write_value(runner.drain)},
                   {"capacity_streams", runner.capacity},
                   {"capacity_pinned", runner.capacity_pinned},
                   {"streams_owned", runner.streams_owned},
                   {"leases_held", runner.leases_held},
                   {"deployment_group", runner.deployment.group},
                   {"deployment_version", runner.deployment.version},
                   {"host", runner.address.host},
                   {"port", runner.address.port},
                   {"metrics_port", runner.address.metrics_port},
                   {"capabilities", json::write_value(runner.capabilities)},
                   {"heartbeat", runner.heartbeat},
                   {"registered_at", when(runner.registered_at)},
                   {"last_heartbeat", when(runner.last_heartbeat)}};
  const json::value* metrics = runner.heartbeat.if_contains("metrics");
  out["metrics"] = metrics != nullptr ? *metrics : json::value(json::object());
  if (!runner.tenant.empty()) out["tenant_id"] = runner.tenant.str();
  if (!runner.site.empty()) out["site_id"] = runner.site.str();
  if (!runner.boot.empty()) out["boot_id"] = runner.boot.str();
  return out;
}

namespace {
constexpr std::string_view kStoreAway = "the store does not answer";

// All requests fail for the same cause, which names hosts and users: it goes to the log only, one line every few
// seconds.
void note_store_failure(const std::string& why) {
  static std::atomic<Instant::rep> next{0};
  Instant::rep now = boot_now().time_since_epoch().count(), due = next;
  if (now < due || !next.compare_exchange_strong(due, now + Duration(5s).count())) return;
  log::warn("store.failed", why);
}
}  // namespace

net::Response failed(const Error& error) {
  if (error.reason == "store_unavailable" && error.message != kStoreAway) {
    note_store_failure(error.message);
    return failed(Error{error.code, error.reason, std::string(kStoreAway)});
  }
  if (error.code == Errc::internal) {
    log::error("request.failed", error.message).with("error_code", error.reason);
    return net::Response::failure(Error{Errc::internal, "internal", "something went wrong here; it was logged"});
  }
  net::Response response = net::Response::failure(error);
  if (error.code == Errc::unauthorized) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace weir::control_plane
