#include "streams.hpp"

#include "rows.hpp"

#include "weir/base/json.hpp"
#include "weir/lease/decide.hpp"
#include "weir/sqlite/core.hpp"

namespace weir::sqlite {

namespace {
// ?1: lease time, by which a lease that has run out has no holder.
#define WEIR_STREAM_SELECT                                                                                          \
  "SELECT s.stream_id, s.tenant_id, s.site_id, s.wishes, s.memory, s.view, s.told_at, s.created_at, s.updated_at, " \
  "CASE WHEN l.released = 0 AND l.expires > ?1 THEN l.owner_id ELSE '' END "                                        \
  "FROM streams s JOIN leases l ON l.camera_uuid = s.stream_id "

StreamRecord stream_row(const Query& q) {
  return {q.id<SubjectId>(0), q.id<TenantId>(1), q.id<SiteId>(2), read_object(q.text(3)), read_object(q.text(4)),
          read_object(q.text(5)), q.wall(6),     q.wall(7),       q.wall(8),              q.id<RunnerId>(9)};
}

std::optional<lease::LeaseRow> find_lease(Db& db, const SubjectId& id) {
  Query q = db.query("SELECT " WEIR_LEASE_COLUMNS " FROM leases l WHERE l.camera_uuid = ?");
  q << id;
  if (!q.next()) return std::nullopt;
  return lease_row(q);
}
}  // namespace

Result<StreamRecord> put_stream(Db& db, WallTime clock, StreamRecord stream) {
  auto lease = find_lease(db, stream.id);
  if (lease && (lease->kind != lease::Kind::stream || lease->tenant != stream.tenant))
    return exists_already("stream", "stream_id");
  if (!lease) {
    Query q = db.query(
        "INSERT INTO leases VALUES (?, ?, ?, 1, '', '', 0, 0, '', 0, 0, 1, 0, '', 0, 0, 0, 'stream', '')");
    q << stream.id << stream.tenant << stream.site;
    q.run();
  } else {
    stream.site = lease->site;
  }
  stream.created_at = stream.updated_at = clock;
  Query q = db.query(
      "INSERT INTO streams VALUES (?1, ?2, ?3, ?4, '{}', '{}', 0, ?5, ?5) "
      "ON CONFLICT (stream_id) DO UPDATE SET wishes = ?4, updated_at = ?5 RETURNING created_at");
  q << stream.id << stream.tenant << stream.site << json::to_text(stream.wishes) << clock;
  if (q.next()) stream.created_at = q.wall(0);
  return stream;
}

Result<Nothing> tell_stream(Db& db, WallTime clock, std::int64_t epoch, const StreamTold& told) {
  auto lease = find_lease(db, told.id);
  bool counts = lease && lease->kind == lease::Kind::stream &&
                lease::fence_accepts(*lease, told.by, told.version, epoch);
  if (!counts) return stale_word();
  Query q = db.query(
      "INSERT INTO streams VALUES (?1, ?2, ?3, '{}', ?4, ?5, ?6, ?6, ?6) "
      "ON CONFLICT (stream_id) DO UPDATE SET memory = ?4, view = ?5, told_at = ?6");
  q << told.id << lease->tenant << lease->site << json::to_text(told.memory) << json::to_text(told.view) << clock;
  q.run();
  return ok();
}

Result<Nothing> remove_stream(Db& db, LeaseTime now, const SubjectId& id, const TenantId& tenant) {
  {
    Query q = db.query(WEIR_STREAM_SELECT "WHERE s.stream_id = ?2 AND (?3 = '' OR s.tenant_id = ?3)");
    q << now << id << tenant;
    if (!q.next()) return no_such("stream", "stream_id");
    if (!stream_row(q).holder.empty()) return not_empty("stream", "a holder");
  }
  Query q = db.query("DELETE FROM streams WHERE stream_id = ?");
  q << id;
  q.run();
  return ok();
}

std::vector<StreamRecord> Core::Reader::list_streams(const TenantId& tenant, const SubjectId& after, int limit,
                                                     LeaseTime now) {
  Query q = db_->query(WEIR_STREAM_SELECT
                       "WHERE s.stream_id > ?2 AND (?3 = '' OR s.tenant_id = ?3) ORDER BY s.stream_id LIMIT ?4");
  q << now << after << tenant << limit;
  std::vector<StreamRecord> streams;
  while (q.next()) streams.push_back(stream_row(q));
  return streams;
}

Result<StreamRecord> Core::Reader::show_stream(const SubjectId& id, const TenantId& tenant, LeaseTime now) {
  Query q = db_->query(WEIR_STREAM_SELECT "WHERE s.stream_id = ?2 AND (?3 = '' OR s.tenant_id = ?3)");
  q << now << id << tenant;
  if (!q.next()) return no_such("stream", "stream_id");
  return stream_row(q);
}

}  // namespace weir::sqlite
