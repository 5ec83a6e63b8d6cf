// What owners say of their leases, beside the rows of the leases themselves: a heartbeat writes no row that a decision
// reads.
#include "weir/base/json.hpp"
#include "weir/sqlite/core.hpp"

#include "db.hpp"

namespace weir::sqlite {

Result<LeaseView> Core::note(const LeaseWord& word, const TenantId& tenant) {
  {
    Query q = db_->query(
        "INSERT INTO lease_notes SELECT l.camera_uuid, l.grant_version, ?4, ?5, ?6, ?7, ?8 "
        "FROM leases l WHERE l.camera_uuid = ?1 AND l.grant_version = ?2 AND l.released = 0 "
        "AND (?3 = '' OR l.tenant_id = ?3) "
        "ON CONFLICT (camera_uuid) DO UPDATE SET grant_version = excluded.grant_version, "
        "shard_id = iif(excluded.shard_id <> '' OR grant_version <> excluded.grant_version, "
        "excluded.shard_id, shard_id), "
        "config_version = iif(excluded.config_version <> '' OR grant_version <> excluded.grant_version, "
        "excluded.config_version, config_version), "
        "zone_version = iif(excluded.zone_version <> '' OR grant_version <> excluded.grant_version, "
        "excluded.zone_version, zone_version), "
        "heard = iif(excluded.heard > 0 OR grant_version <> excluded.grant_version, excluded.heard, heard), "
        "stats = iif(excluded.stats <> '' OR grant_version <> excluded.grant_version, excluded.stats, stats) "
        "WHERE grant_version <= excluded.grant_version");
    q << word.subject << word.grant.n << tenant << word.shard << word.config_version << word.zone_version
      << (word.heartbeat ? clock_() : WallTime{}) << (word.stats ? json::to_text(*word.stats) : std::string());
    q.run();
  }
  return Reader(db_).show(word.subject, tenant, now(), clock_());
}

}  // namespace weir::sqlite
