#include "schema.hpp"

#include "seal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace weir::sqlite {

namespace {
// Times are microseconds: lease time for expires, until, heartbeat_at, hold_* and closed_until; UTC for the others.
constexpr std::array kSteps = {
    R"sql(
CREATE TABLE store_state(
  id INTEGER PRIMARY KEY CHECK (id = 1), epoch INTEGER NOT NULL, counter INTEGER NOT NULL, lease_now INTEGER NOT NULL,
  mark INTEGER NOT NULL, hold_until INTEGER NOT NULL, hold_opened INTEGER NOT NULL, closed_until INTEGER NOT NULL
) STRICT;
INSERT INTO store_state VALUES (1, 1, 0, 0, 0, 0, -60000000, 0);

CREATE TABLE tenants(tenant_id TEXT PRIMARY KEY, name TEXT NOT NULL, created_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE sites(
  site_id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, name TEXT NOT NULL, tokens REAL NOT NULL, capacity REAL NOT NULL,
  refill_per_min REAL NOT NULL, budget_updated INTEGER NOT NULL, created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sites_tenant ON sites(tenant_id);

CREATE TABLE cameras(
  camera_uuid TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, site_id TEXT NOT NULL, enabled INTEGER NOT NULL,
  config TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX cameras_site ON cameras(tenant_id, site_id, camera_uuid);

CREATE TABLE leases(
  camera_uuid TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, site_id TEXT NOT NULL, assignable INTEGER NOT NULL,
  owner_id TEXT NOT NULL, boot_id TEXT NOT NULL, version INTEGER NOT NULL, grant_version INTEGER NOT NULL,
  last_key TEXT NOT NULL, expires INTEGER NOT NULL, ttl INTEGER NOT NULL, released INTEGER NOT NULL,
  revoked INTEGER NOT NULL, previous_boot TEXT NOT NULL, previous_grant INTEGER NOT NULL, acquired_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX leases_owner ON leases(owner_id, boot_id);

CREATE TABLE runners(
  runner_id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, site_id TEXT NOT NULL, about TEXT NOT NULL,
  capacity INTEGER NOT NULL, cordoned INTEGER NOT NULL, drain TEXT NOT NULL, boot_id TEXT NOT NULL,
  heartbeat TEXT NOT NULL, streams_owned INTEGER NOT NULL, heartbeat_at INTEGER NOT NULL,
  registered_at INTEGER NOT NULL, last_heartbeat INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE boots(
  runner_id TEXT NOT NULL, boot_id TEXT NOT NULL, will_sha256 TEXT NOT NULL, dead INTEGER NOT NULL,
  registered_at INTEGER NOT NULL, PRIMARY KEY (runner_id, boot_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE avoids(
  camera_uuid TEXT NOT NULL, runner_id TEXT NOT NULL, until INTEGER NOT NULL, strikes INTEGER NOT NULL,
  PRIMARY KEY (camera_uuid, runner_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE budget_uses(camera_uuid TEXT PRIMARY KEY, grant_version INTEGER NOT NULL) STRICT, WITHOUT ROWID;
)sql",
    // Sequences are never used again, also not after everything was forgotten.
    R"sql(
CREATE TABLE events(
  sequence INTEGER PRIMARY KEY AUTOINCREMENT, event_id TEXT NOT NULL UNIQUE, tenant_id TEXT NOT NULL,
  topic TEXT NOT NULL, routing_key TEXT NOT NULL, payload TEXT NOT NULL, stored_at INTEGER NOT NULL
) STRICT;
CREATE TABLE event_state(id INTEGER PRIMARY KEY CHECK (id = 1), forgotten_to INTEGER NOT NULL) STRICT;
INSERT INTO event_state VALUES (1, 0);
)sql",
    // A tenant of the same name that comes later must not answer to the keys of the first.
    R"sql(
CREATE TABLE api_keys(
  key_id TEXT PRIMARY KEY, secret_sha256 TEXT NOT NULL UNIQUE, name TEXT NOT NULL, role TEXT NOT NULL,
  sub TEXT NOT NULL, tenant_id TEXT NOT NULL, created_at INTEGER NOT NULL, last_used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TRIGGER tenant_keys AFTER DELETE ON tenants
BEGIN DELETE FROM api_keys WHERE tenant_id = OLD.tenant_id; END;
)sql",
    // expired_version: the version whose expiry was announced.
    R"sql(
ALTER TABLE leases ADD COLUMN expired_version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cameras ADD COLUMN configured_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cameras ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;
UPDATE cameras SET configured_at = updated_at;
)sql",
    // expiry_told: the expiry that was announced; a lease that was renewed after it runs out a second time.
    // will_after: the last version before the boot's will; 0 while it lives, or where an older Weir carried it out.
    R"sql(
ALTER TABLE leases RENAME COLUMN expired_version TO expiry_told;
UPDATE leases SET expiry_told = CASE WHEN expiry_told = version THEN expires ELSE 0 END;
ALTER TABLE boots ADD COLUMN will_after INTEGER NOT NULL DEFAULT 0;
)sql",
    // kind: what the lease is about. The column camera_uuid holds the id of every kind of subject.
    R"sql(
ALTER TABLE leases ADD COLUMN kind TEXT NOT NULL DEFAULT 'camera';

CREATE TABLE streams(
  stream_id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, site_id TEXT NOT NULL, wishes TEXT NOT NULL,
  memory TEXT NOT NULL, view TEXT NOT NULL, told_at INTEGER NOT NULL, created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
)sql",
    // cluster: of a camera's lease, which cluster's holder speaks for the camera; '' none. Of displays and the tables
    // beside them, '' stands for nothing. What refers to a camera that is removed loses it, or goes with it.
    R"sql(
ALTER TABLE leases ADD COLUMN cluster TEXT NOT NULL DEFAULT '';
UPDATE leases SET cluster = 'default' WHERE camera_uuid IN
  (SELECT camera_uuid FROM cameras WHERE enabled = 1 AND config LIKE '%"processing":"cluster"%');

CREATE TABLE models(
  model_id INTEGER PRIMARY KEY, tenant_id TEXT NOT NULL, name TEXT NOT NULL, file_name TEXT NOT NULL,
  file_sha256 TEXT NOT NULL, file_bytes INTEGER NOT NULL, metadata TEXT NOT NULL, created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX models_tenant ON models(tenant_id);

CREATE TABLE playlists(
  playlist_id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, name TEXT NOT NULL, model_id INTEGER NOT NULL,
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX playlists_tenant ON playlists(tenant_id);
CREATE INDEX playlists_model ON playlists(model_id);

CREATE TABLE displays(
  display_id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, name TEXT NOT NULL, camera_uuid TEXT NOT NULL,
  playlist_id TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX displays_tenant ON displays(tenant_id);
CREATE INDEX displays_camera ON displays(camera_uuid);
CREATE INDEX displays_playlist ON displays(playlist_id);

CREATE TABLE subscriptions(
  subscription_identifier TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, camera_uuid TEXT NOT NULL,
  model_id INTEGER NOT NULL, options TEXT NOT NULL, created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX subscriptions_camera ON subscriptions(camera_uuid);
CREATE INDEX subscriptions_model ON subscriptions(model_id);

CREATE TRIGGER camera_displays AFTER DELETE ON cameras
BEGIN
  UPDATE displays SET camera_uuid = '' WHERE camera_uuid = OLD.camera_uuid;
  DELETE FROM subscriptions WHERE camera_uuid = OLD.camera_uuid;
END;
)sql",
    // What the owner of a lease said of one tenure; heard: its last heartbeat, 0 none.
    R"sql(
CREATE TABLE lease_notes(
  camera_uuid TEXT PRIMARY KEY, grant_version INTEGER NOT NULL, shard_id TEXT NOT NULL, config_version TEXT NOT NULL,
  zone_version TEXT NOT NULL, heard INTEGER NOT NULL, stats TEXT NOT NULL
) STRICT, WITHOUT ROWID;
)sql",
};
}  // namespace

std::int64_t newest_step() { return static_cast<std::int64_t>(kSteps.size()); }

void check_known(std::int64_t step) {
  if (step > newest_step())
    throw SqliteFailure(SQLITE_SCHEMA, fmt::format("the file is of a newer Weir (schema {}, this one knows {})", step,
                                                   newest_step()));
}

void migrate(Db& db, size_t to) {
  if (auto seal = seal_of(db)) throw SqliteFailure(SQLITE_SCHEMA, seal->sentence);
  std::int64_t seen = schema_step(db);
  check_known(seen);
  for (size_t step = static_cast<size_t>(seen); step < std::min(to, kSteps.size()); ++step) {
    db.script("BEGIN IMMEDIATE");
    db.script(kSteps[step]);
    db.script(fmt::format("PRAGMA user_version = {}", step + 1).c_str());
    db.script("COMMIT");
  }
}

}  // namespace weir::sqlite
