#include "schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace weir::postgres {

namespace {

// Times are microseconds: lease time for expires, until, heartbeat_at, hold_* and closed_until; UTC for the others.
// Ids compare bytewise (COLLATE "C"), so that every store lists in the same order.
// No index covers a column that a renewal changes: renewals stay heap-only.
constexpr const char* kTables = R"sql(
CREATE SEQUENCE lease_counter AS bigint MINVALUE 1 MAXVALUE 1099511627775 NO CYCLE;

CREATE TABLE store_state(
  id int PRIMARY KEY CHECK (id = 1), epoch bigint NOT NULL CHECK (epoch < 8192), lease_now bigint NOT NULL,
  mark bigint NOT NULL, hold_until bigint NOT NULL, hold_opened bigint NOT NULL, closed_until bigint NOT NULL,
  timeline text NOT NULL
) WITH (fillfactor = 10);
INSERT INTO store_state
SELECT 1, 1, 0, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 0, -60000000, 0,
       substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);

CREATE TABLE tenants(tenant_id text COLLATE "C" PRIMARY KEY, name text NOT NULL, created_at bigint NOT NULL);

CREATE TABLE sites(
  site_id text COLLATE "C" PRIMARY KEY, tenant_id text COLLATE "C" NOT NULL REFERENCES tenants, name text NOT NULL,
  tokens double precision NOT NULL, capacity double precision NOT NULL, refill_per_min double precision NOT NULL,
  budget_updated bigint NOT NULL, created_at bigint NOT NULL);
CREATE INDEX sites_tenant ON sites(tenant_id);

CREATE TABLE cameras(
  camera_uuid text COLLATE "C" PRIMARY KEY, tenant_id text COLLATE "C" NOT NULL,
  site_id text COLLATE "C" NOT NULL REFERENCES sites, enabled boolean NOT NULL, config text NOT NULL,
  created_at bigint NOT NULL, updated_at bigint NOT NULL);
CREATE INDEX cameras_site ON cameras(tenant_id, site_id, camera_uuid);

CREATE TABLE leases(
  camera_uuid text COLLATE "C" PRIMARY KEY, tenant_id text COLLATE "C" NOT NULL, site_id text COLLATE "C" NOT NULL,
  assignable boolean NOT NULL, owner_id text COLLATE "C" NOT NULL, boot_id text COLLATE "C" NOT NULL,
  version bigint NOT NULL, grant_version bigint NOT NULL, last_key text NOT NULL, expires bigint NOT NULL,
  ttl bigint NOT NULL, released boolean NOT NULL, revoked boolean NOT NULL, previous_boot text NOT NULL,
  previous_grant bigint NOT NULL, acquired_at bigint NOT NULL, UNIQUE (camera_uuid, version)
) WITH (fillfactor = 40);
CREATE INDEX leases_owner ON leases(owner_id, boot_id);

CREATE TABLE runners(
  runner_id text COLLATE "C" PRIMARY KEY, tenant_id text NOT NULL, site_id text NOT NULL, about text NOT NULL,
  capacity int NOT NULL, cordoned boolean NOT NULL, drain text NOT NULL, boot_id text NOT NULL,
  heartbeat text NOT NULL, streams_owned int NOT NULL, heartbeat_at bigint NOT NULL, registered_at bigint NOT NULL,
  last_heartbeat bigint NOT NULL) WITH (fillfactor = 50);

CREATE TABLE boots(
  runner_id text COLLATE "C" NOT NULL, boot_id text COLLATE "C" NOT NULL, will_sha256 text NOT NULL,
  dead boolean NOT NULL, registered_at bigint NOT NULL, PRIMARY KEY (runner_id, boot_id));

CREATE TABLE avoids(
  camera_uuid text COLLATE "C" NOT NULL, runner_id text COLLATE "C" NOT NULL, until bigint NOT NULL,
  strikes int NOT NULL, PRIMARY KEY (camera_uuid, runner_id));

CREATE TABLE budget_uses(camera_uuid text COLLATE "C" PRIMARY KEY, grant_version bigint NOT NULL);
)sql";

constexpr const char* kFunctions = R"sql(
CREATE FUNCTION weir_clock() RETURNS bigint LANGUAGE sql VOLATILE AS
  $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;
CREATE FUNCTION weir_timeline() RETURNS text LANGUAGE sql VOLATILE AS
  $$ SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) $$;

-- The store as one statement sees it. `counter` is the last number that was drawn.
CREATE VIEW weir_moment AS
  SELECT s.epoch, s.hold_until, s.closed_until, c.clock,
         s.lease_now + least(greatest(c.clock - s.mark, 0), 500000) AS now,
         s.timeline = weir_timeline() AS current
  FROM (SELECT * FROM store_state LIMIT 1) s CROSS JOIN LATERAL (SELECT weir_clock() AS clock) c;

-- The store may have lost commits. `ttl_max` bounds the life of a lease that a lost commit granted.
CREATE FUNCTION weir_open_epoch(ttl_max bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE s store_state%ROWTYPE; c bigint; n bigint;
BEGIN
  SELECT * INTO s FROM store_state FOR UPDATE;
  c := weir_clock();
  n := s.lease_now + least(greatest(c - s.mark, 0), 500000);
  IF s.timeline = weir_timeline() AND n < s.closed_until THEN RETURN false; END IF;
  UPDATE store_state SET epoch = epoch + 1, timeline = weir_timeline(), closed_until = greatest(closed_until, n + ttl_max);
  UPDATE sites SET tokens = 0, budget_updated = n;  -- what lost commits gave away must not be given again
  RETURN true;
END $$;

CREATE FUNCTION weir_tick(ttl_max bigint, OUT hold_opened boolean, OUT epoch_opened boolean, OUT now_epoch bigint)
LANGUAGE plpgsql AS $$
DECLARE s store_state%ROWTYPE; c bigint; n bigint; longest bigint;
BEGIN
  hold_opened := false; epoch_opened := false;
  SELECT * INTO s FROM store_state;
  c := weir_clock();
  now_epoch := s.epoch;
  IF c - s.mark BETWEEN 0 AND 200000 AND s.timeline = weir_timeline() THEN RETURN; END IF;
  SELECT * INTO s FROM store_state FOR UPDATE;
  IF s.timeline <> weir_timeline() THEN
    epoch_opened := weir_open_epoch(ttl_max);
    SELECT * INTO s FROM store_state FOR UPDATE;
  END IF;
  c := weir_clock();  -- after the lock: a clock read before it could lie before another one's mark
  n := s.lease_now + least(greatest(c - s.mark, 0), 500000);
  IF (c - s.mark > 2000000 OR c < s.mark) AND n - s.hold_opened >= 60000000 THEN
    SELECT coalesce(max(ttl), 0) INTO longest FROM leases WHERE NOT released;
    hold_opened := true;
    UPDATE store_state SET lease_now = n, mark = c, hold_opened = n, hold_until = n + longest / 3 + 2000000;
  ELSE
    UPDATE store_state SET lease_now = n, mark = c;
  END IF;
  now_epoch := s.epoch;
END $$;

-- Call it only with the row locked: a number drawn before a wait could be below the row's.
CREATE FUNCTION weir_draw(ttl_max bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE s store_state%ROWTYPE;
BEGIN
  SELECT * INTO s FROM store_state;
  IF s.timeline <> weir_timeline() THEN
    PERFORM weir_open_epoch(ttl_max);
    SELECT * INTO s FROM store_state;
  END IF;
  RETURN (s.epoch << 40) | nextval('lease_counter');
END $$;

CREATE FUNCTION weir_other_eligible(camera text, tenant text, site text, runner text, at bigint, live bigint)
RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (
    SELECT 1 FROM runners r
    WHERE r.runner_id <> runner AND NOT r.cordoned AND r.drain = 'none' AND r.heartbeat_at > at - live
      AND r.tenant_id IN ('', tenant) AND r.site_id IN ('', site)
      AND r.capacity > (SELECT count(*) FROM leases o WHERE o.owner_id = r.runner_id AND NOT o.released)
      AND NOT EXISTS (SELECT 1 FROM avoids a
                      WHERE a.camera_uuid = camera AND a.runner_id = r.runner_id AND a.until > at)) $$;

CREATE FUNCTION weir_revoke(camera text, ttl_max bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE l leases%ROWTYPE; at bigint;
BEGIN
  SELECT * INTO l FROM leases WHERE camera_uuid = camera FOR UPDATE;
  IF NOT FOUND THEN RETURN false; END IF;
  IF l.released THEN RETURN true; END IF;
  SELECT now INTO at FROM weir_moment;
  IF l.owner_id <> '' THEN
    INSERT INTO avoids VALUES (camera, l.owner_id, at + 30000000, 0)
    ON CONFLICT (camera_uuid, runner_id) DO UPDATE SET until = excluded.until, strikes = 0;
  END IF;
  UPDATE leases SET version = weir_draw(ttl_max), released = true, revoked = true, last_key = ''
  WHERE camera_uuid = camera;
  RETURN true;
END $$;

CREATE FUNCTION weir_set_assignable(camera text, tenant text, site text, can boolean, ttl_max bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE l leases%ROWTYPE;
BEGIN
  INSERT INTO leases VALUES (camera, tenant, site, can, '', '', 0, 0, '', 0, 0, true, false, '', 0, 0)
  ON CONFLICT (camera_uuid) DO NOTHING;
  SELECT * INTO l FROM leases WHERE camera_uuid = camera FOR UPDATE;
  IF NOT can AND NOT l.released THEN
    UPDATE leases SET version = weir_draw(ttl_max), released = true, revoked = true, last_key = ''
    WHERE camera_uuid = camera;
  END IF;
  UPDATE leases SET tenant_id = tenant, site_id = site, assignable = can WHERE camera_uuid = camera;
END $$;

-- -1: refused. The boot dies first; an acquire under way holds its row, so the leases read next are complete.
CREATE FUNCTION weir_release_all(runner text, boot text, will text, ttl_max bigint) RETURNS int LANGUAGE plpgsql AS $$
DECLARE l record; n int := 0;
BEGIN
  UPDATE boots SET dead = true WHERE runner_id = runner AND boot_id = boot AND will_sha256 = will AND will <> '';
  IF NOT FOUND THEN RETURN -1; END IF;
  FOR l IN SELECT camera_uuid FROM leases WHERE owner_id = runner AND boot_id = boot AND NOT released
           ORDER BY camera_uuid FOR UPDATE
  LOOP
    UPDATE leases SET version = weir_draw(ttl_max), released = true, last_key = '' WHERE camera_uuid = l.camera_uuid;
    n := n + 1;
  END LOOP;
  RETURN n;
END $$;

-- outcome: 'granted', 'empty', 'no_site', 'no_camera'
CREATE FUNCTION weir_consume(site text, tenant text, camera text, grant_no bigint, OUT outcome text,
                             OUT have double precision, OUT cap double precision, OUT rate double precision)
LANGUAGE plpgsql AS $$
DECLARE s sites%ROWTYPE; at bigint;
BEGIN
  SELECT * INTO s FROM sites WHERE site_id = site AND (tenant = '' OR tenant_id = tenant) FOR UPDATE;
  IF NOT FOUND THEN outcome := 'no_site'; RETURN; END IF;
  SELECT now INTO at FROM weir_moment;
  at := greatest(at, s.budget_updated);
  have := least(s.capacity, s.tokens + (at - s.budget_updated) / 1e6 * s.refill_per_min / 60.0);
  cap := s.capacity; rate := s.refill_per_min;
  IF camera <> '' THEN
    PERFORM 1 FROM leases WHERE camera_uuid = camera AND site_id = site;
    IF NOT FOUND THEN outcome := 'no_camera'; RETURN; END IF;
    PERFORM 1 FROM budget_uses WHERE camera_uuid = camera AND grant_version = grant_no;
    IF FOUND THEN outcome := 'granted'; RETURN; END IF;
  END IF;
  IF have >= 1 THEN
    have := have - 1; outcome := 'granted';
    IF camera <> '' THEN
      INSERT INTO budget_uses VALUES (camera, grant_no)
      ON CONFLICT (camera_uuid) DO UPDATE SET grant_version = excluded.grant_version;
    END IF;
  ELSE
    outcome := 'empty';
  END IF;
  UPDATE sites SET tokens = have, budget_updated = at WHERE site_id = site;
END $$;
)sql";

// A sequence is the inserting transaction's number and the event's place in it: below the oldest transaction that still
// runs, nothing can be inserted any more. `n` counts; numbers of events that turned out to be duplicates are missing.
constexpr const char* kEvents = R"sql(
CREATE SEQUENCE event_counter AS bigint MINVALUE 1 NO CYCLE CACHE 1;
CREATE TABLE events(
  sequence bigint PRIMARY KEY, n bigint NOT NULL, event_id text COLLATE "C" NOT NULL UNIQUE, tenant_id text NOT NULL,
  topic text NOT NULL, routing_key text NOT NULL, payload text NOT NULL, stored_at bigint NOT NULL);
CREATE TABLE event_state(id int PRIMARY KEY CHECK (id = 1), forgotten_to bigint NOT NULL);
INSERT INTO event_state VALUES (1, 0);

-- Every event below this is visible to the statement that asks, and none can come below it any more.
CREATE FUNCTION weir_event_horizon() RETURNS bigint LANGUAGE sql STABLE AS
  $$ SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 13 $$;
)sql";

// A tenant of the same name that comes later must not answer to the keys of the first.
constexpr const char* kKeys = R"sql(
CREATE TABLE api_keys(
  key_id text COLLATE "C" PRIMARY KEY, secret_sha256 text COLLATE "C" NOT NULL UNIQUE, name text NOT NULL,
  role text NOT NULL, sub text NOT NULL, tenant_id text COLLATE "C" REFERENCES tenants ON DELETE CASCADE,
  created_at bigint NOT NULL, last_used_at bigint NOT NULL);
)sql";

// expired_version became expiry_told; noting it is heap-only too.
constexpr const char* kExpiries = R"sql(
ALTER TABLE leases ADD COLUMN expired_version bigint NOT NULL DEFAULT 0;
ALTER TABLE cameras ADD COLUMN configured_at bigint NOT NULL DEFAULT 0, ADD COLUMN crashes int NOT NULL DEFAULT 0;
UPDATE cameras SET configured_at = updated_at;
CREATE TABLE expiry_state(id int PRIMARY KEY CHECK (id = 1), looked_at bigint NOT NULL) WITH (fillfactor = 10);
INSERT INTO expiry_state VALUES (1, -60000000);
DROP FUNCTION weir_release_all;  -- it told how many, not which

-- A scan of the whole table, the only statement that may: an index over expiries would have to follow every renewal.
-- One control plane at a time, none within `every` after the last; rows that somebody is writing are left for the next.
CREATE FUNCTION weir_take_expired(every bigint, most int) RETURNS SETOF leases LANGUAGE plpgsql
SET enable_seqscan = on AS $$
DECLARE m record; expired text[];
BEGIN
  SELECT * INTO m FROM weir_moment;
  IF NOT m.current OR m.now < greatest(m.hold_until, m.closed_until) THEN RETURN; END IF;
  PERFORM 1 FROM expiry_state WHERE looked_at <= m.now - every FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN; END IF;
  expired := ARRAY(SELECT camera_uuid FROM leases
                   WHERE NOT released AND expires <= m.now AND expired_version <> version
                   LIMIT most FOR NO KEY UPDATE SKIP LOCKED);
  IF cardinality(expired) < most THEN UPDATE expiry_state SET looked_at = m.now; END IF;
  IF cardinality(expired) = 0 THEN RETURN; END IF;
  RETURN QUERY UPDATE leases SET expired_version = version WHERE camera_uuid = ANY (expired) RETURNING *;
END $$;
)sql";

// expiry_told: the expiry that was announced; a lease that was renewed after it runs out a second time. Renewals do
// not write it, and no index covers it. will_after: the last version before the boot's will; 0 while it lives, or
// where an older Weir carried it out.
constexpr const char* kToldAgain = R"sql(
ALTER TABLE leases RENAME COLUMN expired_version TO expiry_told;
UPDATE leases SET expiry_told = CASE WHEN expiry_told = version THEN expires ELSE 0 END WHERE expiry_told <> 0;
ALTER TABLE boots ADD COLUMN will_after bigint NOT NULL DEFAULT 0;

CREATE OR REPLACE FUNCTION weir_take_expired(every bigint, most int) RETURNS SETOF leases LANGUAGE plpgsql
SET enable_seqscan = on AS $$
DECLARE m record; expired text[];
BEGIN
  SELECT * INTO m FROM weir_moment;
  IF NOT m.current OR m.now < greatest(m.hold_until, m.closed_until) THEN RETURN; END IF;
  PERFORM 1 FROM expiry_state WHERE looked_at <= m.now - every FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN; END IF;
  expired := ARRAY(SELECT camera_uuid FROM leases
                   WHERE NOT released AND expires <= m.now AND expiry_told <> expires
                   LIMIT most FOR NO KEY UPDATE SKIP LOCKED);
  IF cardinality(expired) < most THEN UPDATE expiry_state SET looked_at = m.now; END IF;
  IF cardinality(expired) = 0 THEN RETURN; END IF;
  RETURN QUERY UPDATE leases SET expiry_told = expires WHERE camera_uuid = ANY (expired) RETURNING *;
END $$;

-- Who let this very lease run out is hardly one to leave the camera to.
CREATE OR REPLACE FUNCTION weir_other_eligible(camera text, tenant text, site text, runner text, at bigint, live bigint)
RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (
    SELECT 1 FROM runners r
    WHERE r.runner_id <> runner AND NOT r.cordoned AND r.drain = 'none' AND r.heartbeat_at > at - live
      AND r.tenant_id IN ('', tenant) AND r.site_id IN ('', site)
      AND r.capacity > (SELECT count(*) FROM leases o WHERE o.owner_id = r.runner_id AND NOT o.released)
      AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.camera_uuid = camera AND l.owner_id = r.runner_id
                      AND NOT l.released AND l.expires <= at)
      AND NOT EXISTS (SELECT 1 FROM avoids a
                      WHERE a.camera_uuid = camera AND a.runner_id = r.runner_id AND a.until > at)) $$;
)sql";

// Pictures on their way to the control planes that asked for them. Unlogged: after a crash no client waits for them
// any more.
constexpr const char* kPictures = R"sql(
CREATE UNLOGGED TABLE pictures(
  camera_uuid text,
  request text,
  jpeg text NOT NULL,
  captured_at text NOT NULL,
  put_at timestamptz NOT NULL,
  PRIMARY KEY (camera_uuid, request));
)sql";

// kind: what the lease is about; the column camera_uuid holds the id of every kind of subject. Capacity and `avoid` know
// cameras only.
constexpr const char* kKinds = R"sql(
ALTER TABLE leases ADD COLUMN kind text NOT NULL DEFAULT 'camera';

CREATE TABLE streams(
  stream_id text COLLATE "C" PRIMARY KEY, tenant_id text COLLATE "C" NOT NULL, site_id text COLLATE "C" NOT NULL,
  wishes text NOT NULL, memory text NOT NULL, view text NOT NULL, told_at bigint NOT NULL, created_at bigint NOT NULL,
  updated_at bigint NOT NULL);

CREATE OR REPLACE FUNCTION weir_other_eligible(camera text, tenant text, site text, runner text, at bigint, live bigint)
RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (
    SELECT 1 FROM runners r
    WHERE r.runner_id <> runner AND NOT r.cordoned AND r.drain = 'none' AND r.heartbeat_at > at - live
      AND r.tenant_id IN ('', tenant) AND r.site_id IN ('', site)
      AND r.capacity > (SELECT count(*) FROM leases o
                        WHERE o.owner_id = r.runner_id AND NOT o.released AND o.kind = 'camera')
      AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.camera_uuid = camera AND l.owner_id = r.runner_id
                      AND NOT l.released AND l.expires <= at)
      AND NOT EXISTS (SELECT 1 FROM avoids a
                      WHERE a.camera_uuid = camera AND a.runner_id = r.runner_id AND a.until > at)) $$;

CREATE OR REPLACE FUNCTION weir_revoke(camera text, ttl_max bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE l leases%ROWTYPE; at bigint;
BEGIN
  SELECT * INTO l FROM leases WHERE camera_uuid = camera FOR UPDATE;
  IF NOT FOUND THEN RETURN false; END IF;
  IF l.released THEN RETURN true; END IF;
  SELECT now INTO at FROM weir_moment;
  IF l.owner_id <> '' AND l.kind = 'camera' THEN
    INSERT INTO avoids VALUES (camera, l.owner_id, at + 30000000, 0)
    ON CONFLICT (camera_uuid, runner_id) DO UPDATE SET until = excluded.until, strikes = 0;
  END IF;
  UPDATE leases SET version = weir_draw(ttl_max), released = true, revoked = true, last_key = ''
  WHERE camera_uuid = camera;
  RETURN true;
END $$;
)sql";

// cluster: of a camera's lease, which cluster's holder speaks for the camera; '' none. What refers to a camera that is
// removed loses it, or goes with it.
constexpr const char* kClusters = R"sql(
ALTER TABLE leases ADD COLUMN cluster text COLLATE "C" NOT NULL DEFAULT '';
UPDATE leases SET cluster = 'default' WHERE camera_uuid IN
  (SELECT camera_uuid FROM cameras WHERE enabled AND config LIKE '%"processing":"cluster"%');

CREATE TABLE models(
  model_id bigint PRIMARY KEY, tenant_id text COLLATE "C" NOT NULL REFERENCES tenants, name text NOT NULL,
  file_name text NOT NULL, file_sha256 text NOT NULL, file_bytes bigint NOT NULL, metadata text NOT NULL,
  created_at bigint NOT NULL, updated_at bigint NOT NULL);
CREATE INDEX models_tenant ON models(tenant_id);

CREATE TABLE playlists(
  playlist_id text COLLATE "C" PRIMARY KEY, tenant_id text COLLATE "C" NOT NULL REFERENCES tenants, name text NOT NULL,
  model_id bigint NOT NULL REFERENCES models, created_at bigint NOT NULL, updated_at bigint NOT NULL);
CREATE INDEX playlists_tenant ON playlists(tenant_id);
CREATE INDEX playlists_model ON playlists(model_id);

CREATE TABLE displays(
  display_id text COLLATE "C" PRIMARY KEY, tenant_id text COLLATE "C" NOT NULL REFERENCES tenants, name text NOT NULL,
  camera_uuid text COLLATE "C" REFERENCES cameras ON DELETE SET NULL,
  playlist_id text COLLATE "C" REFERENCES playlists, created_at bigint NOT NULL, updated_at bigint NOT NULL);
CREATE INDEX displays_tenant ON displays(tenant_id);
CREATE INDEX displays_camera ON displays(camera_uuid);
CREATE INDEX displays_playlist ON displays(playlist_id);

CREATE TABLE subscriptions(
  subscription_identifier text COLLATE "C" PRIMARY KEY, tenant_id text COLLATE "C" NOT NULL,
  camera_uuid text COLLATE "C" NOT NULL REFERENCES cameras ON DELETE CASCADE,
  model_id bigint NOT NULL REFERENCES models, options text NOT NULL, created_at bigint NOT NULL);
CREATE INDEX subscriptions_camera ON subscriptions(camera_uuid);
CREATE INDEX subscriptions_model ON subscriptions(model_id);

DROP FUNCTION weir_set_assignable;  -- it knew no clusters
-- As lease::put_in_charge.
CREATE FUNCTION weir_put_in_charge(camera text, tenant text, site text, can boolean, in_charge text, ttl_max bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE l leases%ROWTYPE;
BEGIN
  INSERT INTO leases VALUES (camera, tenant, site, can, '', '', 0, 0, '', 0, 0, true, false, '', 0, 0)
  ON CONFLICT (camera_uuid) DO NOTHING;
  SELECT * INTO l FROM leases WHERE camera_uuid = camera FOR UPDATE;
  IF NOT can AND NOT l.released THEN
    UPDATE leases SET version = weir_draw(ttl_max), released = true, revoked = true, last_key = ''
    WHERE camera_uuid = camera;
  END IF;
  IF l.cluster NOT IN ('', in_charge) THEN
    UPDATE leases SET version = weir_draw(ttl_max), owner_id = '', boot_id = '', grant_version = 0, last_key = '',
      revoked = false, previous_boot = '', previous_grant = 0
    WHERE camera_uuid = camera;
  END IF;
  UPDATE leases SET tenant_id = tenant, site_id = site, assignable = can, cluster = in_charge
  WHERE camera_uuid = camera;
END $$;
)sql";

// What the owner of a lease said of one tenure; heard: its last heartbeat, 0 none. '' where nothing was said.
constexpr const char* kLeaseNotes = R"sql(
CREATE TABLE lease_notes(
  camera_uuid text COLLATE "C" PRIMARY KEY, grant_version bigint NOT NULL, shard_id text NOT NULL,
  config_version text NOT NULL, zone_version text NOT NULL, heard bigint NOT NULL, stats text NOT NULL
) WITH (fillfactor = 50);
)sql";

constexpr std::array kSteps = {kTables,   kFunctions, kEvents, kKeys,     kExpiries,
                               kToldAgain, kPictures, kKinds,  kClusters, kLeaseNotes};

}  // namespace

std::int64_t newest_step() { return static_cast<std::int64_t>(kSteps.size()); }

namespace {

constexpr Duration kPatience = 60s;

// How many steps were taken. A role that may only read rows can ask.
size_t steps_taken(Connection& c) {
  if (c.script("SELECT to_regclass('weir_schema')", kPatience).text(0, 0).empty()) return 0;
  return static_cast<size_t>(c.script("SELECT coalesce(max(step), 0) FROM weir_schema", kPatience).integer(0, 0));
}

void take_steps(Connection& c, size_t from, size_t to) {
  c.script("CREATE TABLE IF NOT EXISTS weir_schema(step int PRIMARY KEY)", kPatience);
  for (size_t step = from; step < to; ++step)
    c.script(fmt::format("BEGIN; {} INSERT INTO weir_schema VALUES ({}); COMMIT", kSteps[step], step + 1), kPatience);
}

}  // namespace

std::int64_t migrate(Connection& c, size_t to) {
  c.script("SET statement_timeout = 0; SET lock_timeout = 0", kPatience);
  // A standby that has all tables must not be taken for a store: it can keep nothing.
  if (c.script("SHOW transaction_read_only", kPatience).view(0, 0) == "on")
    throw PgFailure("25006", "the server is a standby, or read-only");
  c.script("SELECT pg_advisory_lock(8675309114)", kPatience);
  size_t step = steps_taken(c);
  to = std::min(to, kSteps.size());
  if (step > kSteps.size())
    throw PgFailure("",
                    fmt::format("the database is of a newer Weir (schema {}, this one knows {})", step, kSteps.size()));
  try {
    if (step < to) take_steps(c, step, to);
  } catch (const PgFailure& failure) {
    if (failure.sqlstate != kMayNot) throw;
    throw PgFailure(
        failure.sqlstate,
        fmt::format("the database has schema {}, this Weir needs {}, and its role may not change that ({}): run "
                    "`weir store migrate` with the URL of the role that owns the tables",
                    step, to, failure.what()));
  }
  c.script("SELECT pg_advisory_unlock(8675309114); RESET statement_timeout; RESET lock_timeout", kPatience);
  return static_cast<std::int64_t>(step);
}

}  // namespace weir::postgres
