#include "announcer.hpp"

#include "weir/base/json.hpp"
#include "weir/base/log.hpp"
#include "weir/base/random.hpp"

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/this_coro.hpp>

namespace weir::control_plane {

namespace asio = boost::asio;

namespace {
constexpr Duration kIdle = 30s;
constexpr Duration kAway = 250ms;  // before the store is asked again

// An owner that releases a lease publishes its camera's last status first; after every other end of a lease it may
// not. Where another owner has taken the camera, that one publishes now.
bool owner_was_silenced(const LeaseChange& change) {
  return change.what == "revoked" || change.what == "expired" || change.reason == kLastWill;
}

// Exactly one step of the store drew this version, so the version names that step. Besides, a version can expire, and
// expire again if its owner came back in time.
std::string step_name(const LeaseChange& change) {
  if (change.what != "expired") return fmt::format("{:014x}", change.version.n);
  return fmt::format("{:014x}-expired-{:x}", change.version.n, change.expires.time_since_epoch().count());
}

// An event whose payload is yet to be written.
event::Event announcement(TenantId tenant, std::string routing_key, std::string event_id) {
  return {.topic = std::string(event::kControlTopic),
          .routing_key = std::move(routing_key),
          .event_id = std::move(event_id),
          .tenant = std::move(tenant)};
}
}  // namespace

LeaseChange change_of(std::string_view what, const lease::LeaseRow& row, std::string_view reason) {
  return {what, {row.tenant, row.site, row.subject}, row.owner, row.version, row.kind, reason, row.expires};
}

std::string config_version(const CameraRecord& record) {
  return fmt::format("{:x}", record.configured_at.time_since_epoch().count());
}

std::string Announcer::fresh_id() const { return event::make_event_id(clock_.wall(), random_hex(8)); }

void Announcer::add(event::Event announcement, json::object payload) {
  if (waiting_.size() == kWaitingMax) return instruments_.announcements_lost(1);
  payload["event_id"] = announcement.event_id;
  payload["ts"] = to_iso(clock_.wall());
  announcement.payload = json::to_text(payload);
  waiting_.push_back(std::move(announcement));
  added_.notify();
}

void Announcer::camera(std::string_view what, const CameraRecord& record) {
  const camera::Config& config = record.config;
  json::object payload{{"type", fmt::format("camera.{}", what)},
                       {"camera_uuid", config.camera.str()},
                       {"tenant_id", config.tenant.str()},
                       {"site_id", config.site.str()},
                       {"enabled", config.enabled},
                       {"config_version", config_version(record)}};
  add(announcement(config.tenant, event::camera_key(what, {config.tenant, config.site, config.camera}), fresh_id()),
      std::move(payload));
}

void Announcer::lease(const LeaseChange& change) {
  const event::Place& place = change.place;
  json::object payload{{"type", fmt::format("lease.{}", change.what)},
                       {lease::id_field(change.kind), place.camera.str()},
                       {"tenant_id", place.tenant.str()},
                       {"site_id", place.site.str()},
                       {"runner_id", change.owner.runner.str()},
                       {"boot_id", change.owner.boot.str()},
                       {"version", change.version.n}};
  if (change.kind != lease::Kind::camera) payload["kind"] = lease::to_string(change.kind);
  if (!change.reason.empty()) payload["reason"] = change.reason;
  std::string id = fmt::format("{}lease-{}", kOwnIdPrefix, step_name(change));
  add(announcement(place.tenant, event::lease_key(change.what, place), std::move(id)), std::move(payload));
  if (change.kind == lease::Kind::camera && owner_was_silenced(change)) disconnected(change);
}

void Announcer::snapshot_wanted(const lease::LeaseRow& held, std::string_view request) {
  json::object payload{{"type", "camera.snapshot_wanted"},
                       {"camera_uuid", held.subject.str()},
                       {"tenant_id", held.tenant.str()},
                       {"site_id", held.site.str()},
                       {"runner_id", held.owner.runner.str()},
                       {"boot_id", held.owner.boot.str()},
                       {"request_id", request}};
  event::Place place{held.tenant, held.site, held.subject};
  add(announcement(held.tenant, event::camera_key("snapshot_wanted", place), fresh_id()), std::move(payload));
}

void Announcer::ordered(const StreamRecord& stream, const StreamOrder& order) {
  json::object payload{{"type", "publication.ordered"},
                       {"stream_id", stream.id.str()},
                       {"tenant_id", stream.tenant.str()},
                       {"site_id", stream.site.str()},
                       {"order", order.what}};
  if (order.what == "forward") payload["on"] = json::write_value(order.forward);
  if (!stream.holder.empty()) payload["runner_id"] = stream.holder.str();
  event::Place place{stream.tenant, stream.site, stream.id};
  add(announcement(stream.tenant, event::publication_key("ordered", place), fresh_id()), std::move(payload));
}

void Announcer::desire(std::string_view what, const TenantId& tenant, std::string_view id, json::object about) {
  about["type"] = what;
  about["tenant_id"] = tenant.str();
  add(announcement(tenant, event::desire_key(what, tenant, id), fresh_id()), std::move(about));
}

void Announcer::left_cluster(const lease::LeaseRow& row, std::string_view reason) {
  disconnected(change_of("revoked", row, reason));
}

void Announcer::disconnected(const LeaseChange& change) {
  const event::Place& place = change.place;
  json::object payload{{"type", "stream.status"},
                       {"state", "DISCONNECTED"},
                       {"camera_uuid", place.camera.str()},
                       {"runner_id", change.owner.runner.str()},
                       {"shard_id", ""},
                       {"lease_version", change.version.n},
                       {"reason", change.what == "expired" ? std::string_view("lease_expired") : change.reason}};
  std::string id = fmt::format("{}status-{}", kOwnIdPrefix, step_name(change));
  event::Event told = announcement(place.tenant, event::status_key(place), std::move(id));
  told.topic = event::kStatusTopic;
  told.stamp = event::Stamp{place.camera, change.version};
  add(std::move(told), std::move(payload));
}

void Announcer::runner(const Runner& runner) {
  json::object payload{{"type", "runner.changed"},
                       {"runner_id", runner.id.str()},
                       {"cordoned", runner.cordoned},
                       {"drain_mode", json::write_value(runner.drain)},
                       {"capacity_streams", runner.capacity}};
  std::string key = "runner.changed." + event::routing_word(runner.id.str());
  add(announcement(runner.tenant, std::move(key), fresh_id()), std::move(payload));
}

void Announcer::silent(const RunnerWatch::Silence& silence) {
  json::object payload{{"type", "runner.silent"},
                       {"runner_id", silence.runner.str()},
                       {"last_heartbeat", silence.last_ts},
                       {"silent_s", seconds(kSilentAfter)}};
  std::string key = "runner.silent." + event::routing_word(silence.runner.str());
  add(announcement(silence.tenant, std::move(key), fmt::format("{}silent-{}", kOwnIdPrefix, silence.last_heartbeat)),
      std::move(payload));
}

asio::awaitable<void> Announcer::run() {
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  co_await asio::this_coro::throw_if_cancelled(false);
  for (;;) {
    bool ending = (co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none;
    if (waiting_.empty()) {
      if (ending) co_return;
      co_await added_.wait(clock_, kIdle);
      continue;
    }
    auto count = static_cast<std::ptrdiff_t>(std::min(waiting_.size(), kAppendMax));
    std::vector<event::Event> batch(waiting_.begin(), waiting_.begin() + count);
    auto told = co_await log_.announce(std::move(batch));
    bool away = !told && told.error().code == Errc::unavailable;
    if (away && !ending) {
      co_await clock_.wait(kAway);
      continue;
    }
    if (!told) {
      log::error("announcements.lost", told.error().message).with("announcements", count);
      instruments_.announcements_lost(static_cast<int>(count));
    }
    waiting_.erase(waiting_.begin(), waiting_.begin() + count);
    feed_.wake();
  }
}

}  // namespace weir::control_plane
