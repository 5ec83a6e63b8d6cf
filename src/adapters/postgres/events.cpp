#include "events.hpp"

#include <set>

namespace weir::postgres {

namespace {

// The ids with those of the clusters that process such cameras.
#define WEIR_WITH_CLUSTERS(ids) \
  ids " || ARRAY(SELECT DISTINCT l.cluster FROM leases l WHERE l.camera_uuid = ANY (" ids ") AND l.cluster <> '')"

// $1 event ids, $2 topics, $3 routing keys, $4 payloads, $5 cameras ('' none), $6 versions, $7 the cameras once each,
// $8 runner, $9 boot ('' any), $10 tenant ('' any).
// The lease rows, and those of the clusters that process such cameras, are locked in the order of their ids against a
// change of version, not against renewals, and judged as they are once locked; the lock lasts until what was judged by
// it is committed. A plain read instead would let an event of the old owner be committed after the new owner's first
// one. A camera whose cluster changed while its row was waited for finds no cluster here: nobody speaks for it yet.
// The clocks and the transaction's number are read once; events of one transaction stand in the order of the batch.
constexpr const char* kAppend =
    "WITH m AS MATERIALIZED (SELECT epoch, current, clock FROM weir_moment)"
    ", locked AS MATERIALIZED (SELECT l.camera_uuid, l.kind, l.cluster, l.tenant_id, l.owner_id, l.boot_id, l.version,"
    " l.released FROM leases l WHERE l.camera_uuid = ANY (" WEIR_WITH_CLUSTERS("$7::text[]") ")"
    " ORDER BY l.camera_uuid FOR KEY SHARE OF l)"
    ", clusters AS MATERIALIZED (SELECT * FROM locked WHERE kind = 'cluster')"
    ", speaking AS MATERIALIZED (SELECT k.camera_uuid, k.tenant_id, coalesce(s.owner_id, k.owner_id) AS owner_id,"
    " coalesce(s.boot_id, k.boot_id) AS boot_id, coalesce(s.version, k.version) AS version,"
    " coalesce(s.released, k.released) AS released, k.cluster = '' OR s.version IS NOT NULL AS may FROM locked k"
    " LEFT JOIN clusters s ON s.camera_uuid = k.cluster AND s.tenant_id IN ('', k.tenant_id) AND s.version > k.version)"
    ", judged AS MATERIALIZED (SELECT w.*, coalesce(k.tenant_id, $10::text) AS tenant_id,"
    " w.camera = '' OR coalesce(k.may AND NOT k.released AND k.version = w.version AND (w.version >> 40) = m.epoch"
    "   AND k.owner_id = $8::text AND k.owner_id <> '' AND $9::text IN ('', k.boot_id)"
    "   AND $10::text IN ('', k.tenant_id), false) AS fits"
    " FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[])"
    "   WITH ORDINALITY AS w(event_id, topic, routing_key, payload, camera, version, ord)"
    " CROSS JOIN m LEFT JOIN speaking k ON k.camera_uuid = w.camera)"
    ", inserted AS (INSERT INTO events"
    " SELECT (pg_current_xact_id()::text::bigint << 13) | j.ord, nextval('event_counter'), j.event_id, j.tenant_id,"
    "   j.topic, j.routing_key, j.payload, m.clock"
    " FROM judged j CROSS JOIN m WHERE j.fits AND m.current ORDER BY j.ord"
    " ON CONFLICT (event_id) DO NOTHING RETURNING sequence & 8191 AS ord)"
    " SELECT m.current, i.ord IS NOT NULL,"
    " j.fits OR EXISTS (SELECT 1 FROM events e WHERE e.event_id = j.event_id)"
    " FROM judged j CROSS JOIN m LEFT JOIN inserted i USING (ord) ORDER BY j.ord";
static_assert(kAppendMax < 8192, "an event's place in its batch has 13 bits");

// On a promoted replica, numbers of lost transactions are used again: until the epoch has risen, nothing is written
// that a reader of the old epoch could mistake, and nothing is read.
Error settling() {
  return {Errc::unavailable, "store_settling", "the store was replaced by its replica; a new epoch is being opened"};
}

}  // namespace

Result<std::vector<Confirmation>> append_events(Connection& c, const std::vector<event::Event>& events,
                                                const EventSpeaker& speaker) {
  if (events.size() > kAppendMax)
    return Error{Errc::invalid, "batch_too_large", fmt::format("a batch has at most {} events", kAppendMax)};
  ArrayText ids, topics, keys, payloads, cameras, versions, distinct;
  std::set<std::string_view> seen;
  for (const event::Event& event : events) {
    ids.add(std::string_view(event.event_id));
    topics.add(std::string_view(event.topic));
    keys.add(std::string_view(event.routing_key));
    payloads.add(std::string_view(event.payload));
    cameras.add(event.stamp ? std::string_view(event.stamp->camera.str()) : std::string_view());
    versions.add(event.stamp ? event.stamp->version.n : std::int64_t{0});
    if (event.stamp && seen.insert(event.stamp->camera.str()).second)
      distinct.add(std::string_view(event.stamp->camera.str()));
  }
  Rows rows = c.query(kAppend, Params() << ids.take() << topics.take() << keys.take() << payloads.take()
                                        << cameras.take() << versions.take() << distinct.take() << speaker.runner
                                        << speaker.boot << speaker.tenant);
  std::vector<Confirmation> answers;
  answers.reserve(events.size());
  for (int i = 0; i < rows.size(); ++i) {
    if (!rows.flag(i, 0)) return settling();
    answers.push_back(rows.flag(i, 1)   ? Confirmation::accepted
                      : rows.flag(i, 2) ? Confirmation::duplicate
                                        : Confirmation::stale);
  }
  return answers;
}

Result<Nothing> announce(Connection& c, const std::vector<event::Event>& announcements) {
  WEIR_ASSERT(announcements.size() <= kAppendMax);
  ArrayText tenants, keys, ids, payloads, topics, cameras, versions;
  for (const event::Event& each : announcements) {
    topics.add(std::string_view(each.topic));
    cameras.add(each.stamp ? std::string_view(each.stamp->camera.str()) : std::string_view());
    versions.add(each.stamp ? each.stamp->version.n : std::int64_t{0});
    tenants.add(std::string_view(each.tenant.str()));
    keys.add(std::string_view(each.routing_key));
    ids.add(std::string_view(each.event_id));
    payloads.add(std::string_view(each.payload));
  }
  Rows rows = c.query(
      "WITH m AS MATERIALIZED (SELECT current, clock FROM weir_moment)"
      ", locked AS MATERIALIZED (SELECT l.camera_uuid, l.kind, l.cluster, l.version FROM leases l"
      " WHERE l.camera_uuid = ANY (" WEIR_WITH_CLUSTERS("$6::text[]") ") ORDER BY l.camera_uuid FOR KEY SHARE OF l)"
      ", clusters AS MATERIALIZED (SELECT * FROM locked WHERE kind = 'cluster')"
      ", inserted AS (INSERT INTO events"
      " SELECT (pg_current_xact_id()::text::bigint << 13) | w.ord, nextval('event_counter'), w.event_id, w.tenant_id,"
      "   w.topic, w.routing_key, w.payload, m.clock"
      " FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[])"
      "   WITH ORDINALITY AS w(tenant_id, routing_key, event_id, payload, topic, camera, version, ord)"
      " CROSS JOIN m LEFT JOIN locked k ON k.camera_uuid = w.camera"
      " WHERE m.current AND (w.camera = '' OR (k.version = w.version AND NOT EXISTS (SELECT 1 FROM clusters s"
      "   WHERE s.camera_uuid = k.cluster AND s.version > k.version)))"
      " ORDER BY w.ord ON CONFLICT (event_id) DO NOTHING)"
      " SELECT current FROM m",
      Params() << tenants.take() << keys.take() << ids.take() << payloads.take() << topics.take() << cameras.take()
               << versions.take());
  if (!rows.flag(0, 0)) return settling();
  return ok();
}

// The server adds up the bytes, so that what a page leaves out is neither fetched nor sent.
Result<EventPage> read_events(Connection& c, std::int64_t after, int limit) {
  Rows rows = c.query(
      "WITH m AS MATERIALIZED (SELECT m.epoch, m.current, weir_event_horizon() AS horizon,"
      " (SELECT forgotten_to FROM event_state) AS forgotten_to FROM weir_moment m)"
      " SELECT m.epoch, m.current, m.horizon, m.forgotten_to, e.sequence, e.tenant_id, e.topic, e.routing_key,"
      " e.payload, e.stored_at, e.bytes FROM m LEFT JOIN LATERAL (SELECT *,"
      " sum(octet_length(payload)) OVER (ORDER BY sequence) AS bytes FROM (SELECT * FROM events"
      " WHERE sequence > $1::bigint AND sequence < m.horizon ORDER BY sequence LIMIT $2::int) s) e"
      " ON e.bytes - octet_length(e.payload) < $3::bigint ORDER BY e.sequence",
      Params() << after << limit << static_cast<std::int64_t>(kEventPageBytes));
  if (!rows.flag(0, 1)) return settling();
  EventPage page;
  page.epoch = rows.integer(0, 0);
  page.forgotten_to = rows.integer(0, 3);
  for (int i = 0; !rows.is_null(0, 4) && i < rows.size(); ++i) {
    StoredEvent& kept = page.events.emplace_back();
    kept.sequence = rows.integer(i, 4);
    kept.tenant = rows.id<TenantId>(i, 5);
    kept.topic = rows.text(i, 6);
    kept.routing_key = rows.text(i, 7);
    kept.payload = rows.text(i, 8);
    kept.stored_at = WallTime(Duration(rows.integer(i, 9)));
  }
  page.more = static_cast<int>(page.events.size()) == limit ||
              rows.integer(rows.size() - 1, 10) >= static_cast<std::int64_t>(kEventPageBytes);
  page.scanned_to = page.more ? page.events.back().sequence : std::max(after, rows.integer(0, 2) - 1);
  return page;
}

Result<EventPlace> newest_event(Connection& c) {
  Rows rows = c.query("SELECT epoch, current, weir_event_horizon() - 1 FROM weir_moment");
  if (!rows.flag(0, 1)) return settling();
  return EventPlace{rows.integer(0, 0), rows.integer(0, 2)};
}

// One control plane at a time; the others have nothing to do.
std::int64_t trim_events(Connection& c, const EventRetention& retention, int most) {
  Rows rows = c.query(
      "WITH turn AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(8675309115) AS mine)"
      ", old AS MATERIALIZED (SELECT max(o.sequence) AS last FROM"
      " (SELECT sequence, n, stored_at FROM events ORDER BY sequence LIMIT $1::int) o"
      " WHERE o.stored_at < weir_clock() - $2::bigint"
      " OR (o.stored_at < weir_clock() - $3::bigint OR o.stored_at > weir_clock() + $5::bigint)"
      " AND o.n <= (SELECT last_value FROM event_counter) - $4::bigint)"
      ", noted AS (UPDATE event_state SET forgotten_to = greatest(forgotten_to, old.last) FROM old, turn"
      " WHERE turn.mine AND old.last IS NOT NULL)"
      ", gone AS (DELETE FROM events USING old, turn WHERE turn.mine AND sequence <= old.last RETURNING 1)"
      " SELECT count(*) FROM gone",
      Params() << most << retention.age << kEventsRemembered << retention.events_max << kEventsFromTheFuture);
  return rows.integer(0, 0);
}

}  // namespace weir::postgres
