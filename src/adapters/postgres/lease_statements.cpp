#include "lease_statements.hpp"

namespace weir::postgres {

// Each statement is a pipeline: `m` the moment; `locked` the wanted rows, locked in camera order; `judged` the verdict
// on each as it stands now that it is locked; `drawn` with a fresh version where one is needed; then the write, and
// the answer from what was drawn. A row that was locked is written for sure, so the answer need not read it again.
#define WEIR_MOMENT "WITH m AS MATERIALIZED (SELECT * FROM weir_moment)"
#define WEIR_LOCKED(wanted, columns, strength, kind)                                                                       \
  ", locked AS MATERIALIZED (SELECT l.*, w.ord, " columns " FROM " wanted " JOIN leases l USING (camera_uuid)"       \
  " WHERE ($6::text = '' OR l.tenant_id = $6) AND l.kind = " kind " ORDER BY l.camera_uuid FOR " strength " OF l)"
#define WEIR_MINE "k.owner_id = $3::text AND k.boot_id = $4::text AND k.owner_id <> ''"
// Without a version only a lease that was acquired without a key can be touched.
#define WEIR_MATCHES "CASE WHEN k.asked >= 0 THEN k.asked = k.version ELSE k.last_key = '' END"
#define WEIR_DRAWN(drawing)                                                                                   \
  ", drawn AS MATERIALIZED (SELECT j.*, CASE WHEN j.verdict IN (" drawing ")"                                 \
  " THEN (m.epoch << 40) | nextval('lease_counter') ELSE j.version END AS fresh FROM judged j CROSS JOIN m)"
// A number that is not above the row's would break the order of versions: nothing is written then.
#define WEIR_RISES "d.fresh > d.version"
#define WEIR_ACQUIRED "CASE WHEN d.verdict = 'granted' THEN m.clock ELSE d.acquired_at END"
// Across an epoch the store cannot vouch for who came before.
#define WEIR_KNOWS_PREVIOUS "(d.owner_id <> '' AND (d.grant_version >> 40) = m.epoch)"

// Rows of subjects that nobody has asked for before; $1 ids, $2 tenant, $3 site, $4 kind.
const char* const kMake =
    "INSERT INTO leases SELECT id, $2::text, $3::text, true, '', '', 0, 0, '', 0, 0, true, false, '', 0, 0, 0, $4::text"
    " FROM unnest($1::text[]) AS id ORDER BY id ON CONFLICT (camera_uuid) DO NOTHING";

// The boot's row is share-locked: a last will waits for this statement, or this statement sees it.
const char* const kAcquire =
    WEIR_MOMENT
    ", boot AS MATERIALIZED (SELECT dead FROM boots WHERE runner_id = $3::text AND boot_id = $4::text FOR SHARE)"
    ", me AS MATERIALIZED (SELECT cordoned OR drain <> 'none' AS cordoned FROM runners WHERE runner_id = $3::text)"
    WEIR_LOCKED("unnest($1::text[], $2::text[]) WITH ORDINALITY AS w(camera_uuid, key, ord)", "w.key", "UPDATE", "$8::text")
    ", judged AS MATERIALIZED (SELECT k.*, CASE"
    " WHEN NOT m.current THEN 'stale'"
    " WHEN NOT k.assignable THEN 'disabled'"
    " WHEN coalesce((SELECT dead FROM boot), false) THEN 'boot_dead'"
    " WHEN " WEIR_MINE " AND NOT k.released THEN CASE WHEN (k.version >> 40) < m.epoch THEN 'granted'"
    "   WHEN k.key = k.last_key THEN 'replayed' ELSE 'yours' END"
    " WHEN k.kind = 'camera' AND coalesce((SELECT cordoned FROM me), false) THEN 'cordoned'"
    " WHEN k.kind = 'camera' AND EXISTS (SELECT 1 FROM avoids a WHERE a.camera_uuid = k.camera_uuid AND a.runner_id = $3::text"
    "   AND a.until > m.now)"
    "   AND weir_other_eligible(k.camera_uuid, k.tenant_id, k.site_id, $3::text, m.now, $7::bigint) THEN 'avoided'"
    " WHEN k.released THEN CASE WHEN m.now < m.closed_until THEN 'settling' ELSE 'granted' END"
    " WHEN k.expires > m.now THEN 'held'"
    " WHEN m.now < greatest(m.hold_until, m.closed_until) THEN 'held_settling'"
    " ELSE 'granted' END AS verdict FROM locked k CROSS JOIN m)"
    WEIR_DRAWN("'granted'")
    ", granted AS (UPDATE leases l SET owner_id = $3::text, boot_id = $4::text, version = d.fresh,"
    " grant_version = d.fresh, last_key = d.key, expires = m.now + $5::bigint, ttl = $5::bigint, released = false,"
    " revoked = false, acquired_at = m.clock,"
    " previous_boot = CASE WHEN " WEIR_KNOWS_PREVIOUS " THEN d.boot_id ELSE '' END,"
    " previous_grant = CASE WHEN " WEIR_KNOWS_PREVIOUS " THEN d.grant_version ELSE 0 END"
    " FROM drawn d, m WHERE l.camera_uuid = d.camera_uuid AND d.verdict = 'granted' AND " WEIR_RISES ")"
    ", replayed AS (UPDATE leases l SET expires = m.now + $5::bigint, ttl = $5::bigint FROM drawn d, m"
    " WHERE l.camera_uuid = d.camera_uuid AND d.verdict = 'replayed')"
    " SELECT d.ord, CASE WHEN d.verdict = 'granted' AND NOT " WEIR_RISES " THEN 'unwritten' ELSE d.verdict END,"
    " d.fresh, CASE WHEN d.verdict = 'granted' THEN d.fresh ELSE d.grant_version END,"
    " CASE WHEN d.verdict IN ('granted', 'replayed') THEN $5::bigint ELSE d.ttl END,"
    " CASE WHEN d.verdict IN ('granted', 'replayed') THEN m.now + $5::bigint ELSE d.expires END,"
    " CASE WHEN d.verdict = 'replayed' THEN d.previous_boot WHEN " WEIR_KNOWS_PREVIOUS " THEN d.boot_id ELSE '' END,"
    " CASE WHEN d.verdict = 'replayed' THEN d.previous_grant WHEN " WEIR_KNOWS_PREVIOUS " THEN d.grant_version ELSE 0 END,"
    " d.verdict = 'granted' AND NOT d.released AND NOT (d.owner_id = $3::text AND d.boot_id = $4::text),"
    " m.now, m.clock, m.epoch, " WEIR_ACQUIRED ", d.tenant_id, d.site_id FROM drawn d CROSS JOIN m ORDER BY d.ord";

#define WEIR_RENEW_JUDGED                                                                             \
  ", judged AS MATERIALIZED (SELECT k.*, CASE"                                                        \
  " WHEN NOT m.current THEN 'stale'"                                                                  \
  " WHEN NOT (" WEIR_MINE ") OR k.released THEN 'lost'"                                               \
  " WHEN " WEIR_MATCHES " THEN CASE WHEN (k.version >> 40) < m.epoch THEN 'granted'"                  \
  "   WHEN k.rotate THEN 'rotated' ELSE 'renewed' END"                                                \
  " WHEN k.rotate AND k.key <> '' AND k.key = k.last_key"                                             \
  "   THEN CASE WHEN (k.version >> 40) < m.epoch THEN 'granted' ELSE 'replayed' END"                  \
  " ELSE 'lost' END AS verdict FROM locked k CROSS JOIN m)"
#define WEIR_RENEW_ANSWER                                                                                           \
  " SELECT d.ord, CASE WHEN d.verdict IN ('granted', 'rotated') AND NOT " WEIR_RISES " THEN 'unwritten'"            \
  " ELSE d.verdict END, d.fresh, CASE WHEN d.verdict = 'granted' THEN d.fresh ELSE d.grant_version END,"            \
  " CASE WHEN d.verdict = 'lost' THEN d.ttl ELSE $5::bigint END,"                                                   \
  " CASE WHEN d.verdict = 'lost' THEN d.expires ELSE m.now + $5::bigint END, '', 0, false,"                         \
  " m.now, m.clock, m.epoch, " WEIR_ACQUIRED " FROM drawn d CROSS JOIN m ORDER BY d.ord"

// The hot path: renewals touch no indexed column and do not wait for event inserts.
const char* const kRenew =
    WEIR_MOMENT
    WEIR_LOCKED("unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS w(camera_uuid, version, ord)",
                "w.version AS asked, false AS rotate, ''::text AS key", "NO KEY UPDATE", "$7::text")
    WEIR_RENEW_JUDGED WEIR_DRAWN("'granted'")
    ", plain AS (UPDATE leases l SET expires = m.now + $5::bigint, ttl = $5::bigint FROM drawn d, m"
    " WHERE l.camera_uuid = d.camera_uuid AND d.verdict = 'renewed')"
    ", anew AS (UPDATE leases l SET version = d.fresh, grant_version = d.fresh,"
    " expires = m.now + $5::bigint, ttl = $5::bigint, acquired_at = m.clock, previous_boot = '', previous_grant = 0"
    " FROM drawn d, m WHERE l.camera_uuid = d.camera_uuid AND d.verdict = 'granted' AND " WEIR_RISES ")"
    WEIR_RENEW_ANSWER;

const char* const kRotate =
    WEIR_MOMENT
    WEIR_LOCKED("unnest($1::text[], $2::bigint[], $7::boolean[], $8::text[])"
                " WITH ORDINALITY AS w(camera_uuid, version, rotate, key, ord)",
                "w.version AS asked, w.rotate, w.key", "UPDATE", "$9::text")
    WEIR_RENEW_JUDGED WEIR_DRAWN("'granted', 'rotated'")
    ", written AS (UPDATE leases l SET version = d.fresh,"
    " grant_version = CASE WHEN d.verdict = 'granted' THEN d.fresh ELSE l.grant_version END,"
    " last_key = CASE WHEN d.verdict IN ('granted', 'rotated') AND d.rotate THEN d.key ELSE l.last_key END,"
    " expires = m.now + $5::bigint, ttl = $5::bigint,"
    " acquired_at = CASE WHEN d.verdict = 'granted' THEN m.clock ELSE l.acquired_at END,"
    " previous_boot = CASE WHEN d.verdict = 'granted' THEN '' ELSE l.previous_boot END,"
    " previous_grant = CASE WHEN d.verdict = 'granted' THEN 0 ELSE l.previous_grant END"
    " FROM drawn d, m WHERE l.camera_uuid = d.camera_uuid AND (d.verdict IN ('renewed', 'replayed')"
    " OR d.verdict IN ('granted', 'rotated') AND " WEIR_RISES "))"
    WEIR_RENEW_ANSWER;

const char* const kRelease =
    WEIR_MOMENT
    WEIR_LOCKED("unnest($1::text[], $2::bigint[], $5::boolean[])"
                " WITH ORDINALITY AS w(camera_uuid, version, avoid, ord)", "w.version AS asked, w.avoid AND l.kind = 'camera' AS avoid", "UPDATE", "$8::text")
    ", judged AS MATERIALIZED (SELECT k.*, CASE"
    " WHEN NOT m.current THEN 'stale'"
    " WHEN " WEIR_MINE " AND k.released AND NOT k.revoked THEN 'said'"
    " WHEN NOT (" WEIR_MINE ") OR k.released OR NOT (" WEIR_MATCHES ") THEN 'lost'"
    " WHEN k.avoid AND NOT weir_other_eligible(k.camera_uuid, k.tenant_id, k.site_id, $3::text, m.now, $7::bigint)"
    "   THEN 'kept'"
    " ELSE 'released' END AS verdict FROM locked k CROSS JOIN m)"
    WEIR_DRAWN("'released'")
    ", written AS (UPDATE leases l SET version = d.fresh, released = true, last_key = ''"
    " FROM drawn d WHERE l.camera_uuid = d.camera_uuid AND d.verdict = 'released' AND " WEIR_RISES ")"
    ", avoided AS (INSERT INTO avoids AS a SELECT d.camera_uuid, $3::text, m.now + 60000000, 1 FROM drawn d, m"
    " WHERE d.verdict = 'released' AND d.avoid AND " WEIR_RISES
    " ON CONFLICT (camera_uuid, runner_id) DO UPDATE SET"
    " strikes = a.strikes + 1, until = (SELECT now FROM m) + (60000000::bigint << least(a.strikes, 4)))"
    " SELECT d.ord, CASE WHEN d.verdict = 'released' AND NOT " WEIR_RISES " THEN 'unwritten' ELSE d.verdict END,"
    " d.fresh, d.grant_version, d.ttl, d.expires, '', 0, false, m.now, m.clock, m.epoch, d.acquired_at,"
    " d.tenant_id, d.site_id FROM drawn d CROSS JOIN m ORDER BY d.ord";

}  // namespace weir::postgres
