#include "streams.hpp"

#include "weir/base/json.hpp"
#include "weir/ports/store_errors.hpp"

namespace weir::postgres {

namespace {
#define WEIR_STREAM_SELECT                                                                                         \
  "SELECT s.stream_id, s.tenant_id, s.site_id, s.wishes, s.memory, s.view, s.told_at, s.created_at, s.updated_at," \
  " CASE WHEN NOT l.released AND l.expires > m.now THEN l.owner_id ELSE '' END"                                    \
  " FROM streams s JOIN leases l ON l.camera_uuid = s.stream_id CROSS JOIN weir_moment m "

StreamRecord stream_row(const Rows& r, int i) {
  auto wall = [&](int column) { return WallTime(Duration(r.integer(i, column))); };
  auto object = [&](int column) { return read_object(r.view(i, column)); };
  return {r.id<SubjectId>(i, 0), r.id<TenantId>(i, 1), r.id<SiteId>(i, 2), object(3), object(4), object(5),
          wall(6), wall(7), wall(8), r.id<RunnerId>(i, 9)};
}
}  // namespace

Result<StreamRecord> put_stream(Connection& c, StreamRecord stream) {
  Transaction tx(c);
  c.query("INSERT INTO leases SELECT $1::text, $2::text, $3::text, true, '', '', 0, 0, '', 0, 0, true, false, '', 0, 0, 0,"
          " 'stream' ON CONFLICT (camera_uuid) DO NOTHING",
          Params() << stream.id << stream.tenant << stream.site);
  Rows lease = c.query("SELECT kind, tenant_id, site_id FROM leases WHERE camera_uuid = $1::text", Params() << stream.id);
  if (lease.view(0, 0) != "stream" || lease.view(0, 1) != stream.tenant.str())
    return exists_already("stream", "stream_id");
  stream.site = lease.id<SiteId>(0, 2);
  Rows rows = c.query(
      "INSERT INTO streams SELECT $1::text, $2::text, $3::text, $4::text, '{}', '{}', 0, k, k"
      " FROM (SELECT weir_clock() AS k) t"
      " ON CONFLICT (stream_id) DO UPDATE SET wishes = excluded.wishes, updated_at = excluded.updated_at"
      " RETURNING created_at, updated_at",
      Params() << stream.id << stream.tenant << stream.site << json::to_text(stream.wishes));
  tx.commit();
  stream.created_at = WallTime(Duration(rows.integer(0, 0)));
  stream.updated_at = WallTime(Duration(rows.integer(0, 1)));
  return stream;
}

// The lease's row is locked against a change of version until what was judged by it is committed, as an event's is.
Result<Nothing> tell_stream(Connection& c, const StreamTold& told) {
  Rows rows = c.query(
      "WITH m AS MATERIALIZED (SELECT epoch, current, clock FROM weir_moment)"
      ", held AS MATERIALIZED (SELECT l.tenant_id, l.site_id FROM leases l CROSS JOIN m WHERE l.camera_uuid = $1::text"
      " AND l.kind = 'stream' AND NOT l.released AND l.owner_id = $2::text AND l.boot_id = $3::text AND l.version = $4::bigint"
      " AND (l.version >> 40) = m.epoch AND m.current FOR KEY SHARE OF l)"
      " INSERT INTO streams SELECT $1::text, h.tenant_id, h.site_id, '{}', $5::text, $6::text, m.clock, m.clock, m.clock"
      " FROM held h CROSS JOIN m ON CONFLICT (stream_id) DO UPDATE SET memory = excluded.memory, view = excluded.view,"
      " told_at = excluded.told_at RETURNING 1",
      Params() << told.id << told.by.runner << told.by.boot << told.version.n << json::to_text(told.memory)
               << json::to_text(told.view));
  if (rows.size() == 0) return stale_word();
  return ok();
}

std::vector<StreamRecord> list_streams(Connection& c, const TenantId& tenant, const SubjectId& after, int limit) {
  Rows rows = c.query(WEIR_STREAM_SELECT
                      "WHERE s.stream_id > $1::text AND ($2::text = '' OR s.tenant_id = $2) ORDER BY s.stream_id"
                      " LIMIT $3::int",
                      Params() << after << tenant << limit);
  std::vector<StreamRecord> streams;
  for (int i = 0; i < rows.size(); ++i) streams.push_back(stream_row(rows, i));
  return streams;
}

Result<StreamRecord> show_stream(Connection& c, const SubjectId& id, const TenantId& tenant) {
  Rows rows = c.query(WEIR_STREAM_SELECT "WHERE s.stream_id = $1::text AND ($2::text = '' OR s.tenant_id = $2)",
                      Params() << id << tenant);
  if (rows.size() == 0) return no_such("stream", "stream_id");
  return stream_row(rows, 0);
}

Result<Nothing> remove_stream(Connection& c, const SubjectId& id, const TenantId& tenant) {
  TRY(present, show_stream(c, id, tenant));
  if (!present.holder.empty()) return not_empty("stream", "a holder");
  c.query("DELETE FROM streams WHERE stream_id = $1::text", Params() << id);
  return ok();
}

}  // namespace weir::postgres
