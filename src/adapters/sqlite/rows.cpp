#include "rows.hpp"

namespace weir::sqlite {

lease::LeaseRow lease_row(const Query& q) {
  lease::LeaseRow row;
  row.subject = q.id<CameraId>(0);
  row.tenant = q.id<TenantId>(1);
  row.site = q.id<SiteId>(2);
  row.assignable = q.integer(3) != 0;
  row.owner = {q.id<RunnerId>(4), q.id<BootId>(5)};
  row.version = {q.integer(6)};
  row.grant = {q.integer(7)};
  row.last_key = q.text(8);
  row.expires = q.lease_time(9);
  row.ttl = q.duration(10);
  row.released = q.integer(11) != 0;
  row.revoked = q.integer(12) != 0;
  if (q.integer(14) != 0) row.previous = lease::Tenure{q.id<BootId>(13), {q.integer(14)}};
  row.acquired_at = q.wall(15);
  row.kind = lease::kind_of(q.text(16));
  row.cluster = q.id<ClusterId>(17);
  return row;
}

LeaseView lease_view(const Query& q, LeaseTime now, WallTime clock) {
  LeaseView view{lease_row(q)};
  view.expires_at = clock + (view.row.expires - now);
  view.expired = !view.row.released && view.row.expires <= now;
  if (!q.is_null(18)) view.note = {q.text(18), q.text(19), q.text(20), q.wall(21), read_object(q.text(22))};
  return view;
}

Site site_row(const Query& q, LeaseTime now) {
  Site site{q.id<SiteId>(0), q.id<TenantId>(1), q.text(2)};
  site.budget = bucket::refilled({q.number(3), q.number(4), q.number(5), q.lease_time(6)}, now);
  site.created_at = q.wall(7);
  return site;
}

Result<CameraRecord> camera_row(const Query& q) {
  TRY(config, read_kept(q.text(0)));
  return CameraRecord{std::move(config), q.wall(1), q.wall(2), q.wall(3), static_cast<int>(q.integer(4))};
}

Runner runner_row(const Query& q, LeaseTime now, Duration live) {
  Runner runner;
  runner.id = q.id<RunnerId>(0);
  runner.tenant = q.id<TenantId>(1);
  runner.site = q.id<SiteId>(2);
  if (auto about = json::parse_text(q.text(3))) read_about(*about, runner);
  runner.capacity = static_cast<int>(q.integer(4));
  runner.cordoned = q.integer(5) != 0;
  runner.drain = drain_mode(q.text(6));
  runner.boot = q.id<BootId>(7);
  if (auto body = json::parse_text(q.text(8)); body && body->is_object()) runner.heartbeat = body->get_object();
  runner.streams_owned = static_cast<int>(q.integer(9));
  runner.live = now - q.lease_time(10) < live;
  runner.registered_at = q.wall(11);
  runner.last_heartbeat = q.wall(12);
  runner.leases_held = static_cast<int>(q.integer(13));
  return runner;
}

}  // namespace weir::sqlite
