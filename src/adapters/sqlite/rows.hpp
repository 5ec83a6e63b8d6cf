// How rows of the tables become values. Private to this folder.
#pragma once

#include "db.hpp"

#include "weir/lease/row.hpp"
#include "weir/ports/catalog.hpp"
#include "weir/ports/lease_store.hpp"

namespace weir::sqlite {

#define WEIR_LEASE_COLUMNS                                                                                       \
  "l.camera_uuid, l.tenant_id, l.site_id, l.assignable, l.owner_id, l.boot_id, l.version, l.grant_version, "     \
  "l.last_key, l.expires, l.ttl, l.released, l.revoked, l.previous_boot, l.previous_grant, l.acquired_at, "    \
  "l.kind, l.cluster"
// With the note of the tenure, as `lease_view` reads it.
#define WEIR_LEASE_VIEW                                                                                    \
  "SELECT " WEIR_LEASE_COLUMNS ", n.shard_id, n.config_version, n.zone_version, n.heard, n.stats "         \
  "FROM leases l LEFT JOIN lease_notes n ON n.camera_uuid = l.camera_uuid AND n.grant_version = l.grant_version "
#define WEIR_CAMERA_COLUMNS "config, created_at, updated_at, configured_at, crashes, camera_uuid"
#define WEIR_SITE_COLUMNS \
  "site_id, tenant_id, name, tokens, capacity, refill_per_min, budget_updated, created_at"
#define WEIR_RUNNER_COLUMNS                                                                                      \
  "r.runner_id, r.tenant_id, r.site_id, r.about, r.capacity, r.cordoned, r.drain, r.boot_id, r.heartbeat, "      \
  "r.streams_owned, r.heartbeat_at, r.registered_at, r.last_heartbeat, "                                         \
  "(SELECT count(*) FROM leases o WHERE o.owner_id = r.runner_id AND o.released = 0 AND o.kind = 'camera')"

lease::LeaseRow lease_row(const Query& q);
LeaseView lease_view(const Query& q, LeaseTime now, WallTime clock);
Site site_row(const Query& q, LeaseTime now);
Result<CameraRecord> camera_row(const Query& q);
Runner runner_row(const Query& q, LeaseTime now, Duration live);

}  // namespace weir::sqlite
