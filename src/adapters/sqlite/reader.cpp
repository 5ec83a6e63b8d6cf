// The reading half of the embedded store.
#include "rows.hpp"

#include "weir/base/log_once.hpp"
#include "weir/sqlite/core.hpp"

namespace weir::sqlite {

Core::Reader::Reader(const std::string& path) : db_(std::make_shared<Db>(path, true)) {}
Core::Reader::Reader(std::shared_ptr<Db> shared_db) : db_(std::move(shared_db)) {}
Core::Reader::~Reader() = default;

std::vector<LeaseView> Core::Reader::list(const LeaseFilter& filter, LeaseTime now, WallTime clock) {
  Query q = db_->query(WEIR_LEASE_VIEW
                       "WHERE l.camera_uuid > ?1 AND (?2 = '' OR tenant_id = ?2) "
                       "AND (?3 = '' OR owner_id = ?3) AND (?4 = '' OR boot_id = ?4) AND (?5 = 0 OR released = 0) "
                       "AND owner_id <> '' AND kind = ?7 ORDER BY l.camera_uuid LIMIT ?6");
  q << filter.after << filter.tenant << filter.runner << filter.boot << filter.only_held << filter.limit
    << lease::to_string(filter.kind);
  std::vector<LeaseView> views;
  while (q.next()) views.push_back(lease_view(q, now, clock));
  return views;
}

Result<LeaseView> Core::Reader::show(const CameraId& camera, const TenantId& tenant, LeaseTime now, WallTime clock) {
  Query q = db_->query(WEIR_LEASE_VIEW "WHERE l.camera_uuid = ?1 AND (?2 = '' OR tenant_id = ?2)");
  q << camera << tenant;
  if (!q.next()) return no_such("camera", "camera_uuid");
  return lease_view(q, now, clock);
}

std::vector<Tenant> Core::Reader::list_tenants(const TenantId& only, const TenantId& after, int limit) {
  Query q = db_->query(
      "SELECT tenant_id, name, created_at FROM tenants WHERE tenant_id > ?1 AND (?2 = '' OR tenant_id = ?2) "
      "ORDER BY tenant_id LIMIT ?3");
  q << after << only << limit;
  std::vector<Tenant> tenants;
  while (q.next()) tenants.push_back({q.id<TenantId>(0), q.text(1), q.wall(2)});
  return tenants;
}

std::vector<Site> Core::Reader::list_sites(const TenantId& tenant, const SiteId& after, int limit, LeaseTime now) {
  Query q = db_->query("SELECT " WEIR_SITE_COLUMNS
                       " FROM sites WHERE site_id > ?1 AND (?2 = '' OR tenant_id = ?2) ORDER BY site_id LIMIT ?3");
  q << after << tenant << limit;
  std::vector<Site> sites;
  while (q.next()) sites.push_back(site_row(q, now));
  return sites;
}

Result<Site> Core::Reader::show_site(const SiteId& id, const TenantId& tenant, LeaseTime now) {
  Query q = db_->query("SELECT " WEIR_SITE_COLUMNS " FROM sites WHERE site_id = ?1 AND (?2 = '' OR tenant_id = ?2)");
  q << id << tenant;
  if (!q.next()) return no_such("site", "site_id");
  return site_row(q, now);
}

int Core::Reader::count_cameras(const SiteId& id, const TenantId& tenant) {
  Query q = db_->query(
      "SELECT count(*) FROM sites s JOIN cameras c ON c.tenant_id = s.tenant_id AND c.site_id = s.site_id "
      "WHERE s.site_id = ?1 AND (?2 = '' OR s.tenant_id = ?2) AND c.enabled = 1");
  q << id << tenant;
  q.next();
  return static_cast<int>(q.integer(0));
}

Result<std::vector<CameraRecord>> Core::Reader::list_cameras(const CameraFilter& filter) {
  Query q = db_->query(
      "SELECT " WEIR_CAMERA_COLUMNS " FROM cameras WHERE camera_uuid > ?1 AND (?2 = '' OR tenant_id = ?2) "
      "AND (?3 = '' OR site_id = ?3) AND (?4 < 0 OR enabled = ?4) ORDER BY camera_uuid");
  q << filter.after << filter.tenant << filter.site << (filter.enabled ? static_cast<int>(*filter.enabled) : -1);
  std::vector<CameraRecord> cameras;
  while (static_cast<int>(cameras.size()) < filter.limit && q.next()) {
    auto record = camera_row(q);
    if (record) cameras.push_back(*std::move(record));
    else log::error_once(kUnreadableCamera, record.error().message, "camera_uuid", q.id<CameraId>(5).str());
  }
  return cameras;
}

Result<CameraRecord> Core::Reader::show_camera(const CameraId& id, const TenantId& tenant) {
  Query q = db_->query(
      "SELECT " WEIR_CAMERA_COLUMNS " FROM cameras WHERE camera_uuid = ?1 AND (?2 = '' OR tenant_id = ?2)");
  q << id << tenant;
  if (!q.next()) return no_such("camera", "camera_uuid");
  return camera_row(q);
}

std::vector<Runner> Core::Reader::list_runners(const TenantId& tenant, const RunnerId& after, int limit, LeaseTime now,
                                               Duration live) {
  Query q = db_->query("SELECT " WEIR_RUNNER_COLUMNS
                       " FROM runners r WHERE runner_id > ?1 AND (?2 = '' OR tenant_id IN ('', ?2)) "
                       "ORDER BY runner_id LIMIT ?3");
  q << after << tenant << limit;
  std::vector<Runner> runners;
  while (q.next()) runners.push_back(runner_row(q, now, live));
  return runners;
}

Result<Runner> Core::Reader::show_runner(const RunnerId& id, const TenantId& tenant, LeaseTime now, Duration live) {
  Query q = db_->query("SELECT " WEIR_RUNNER_COLUMNS
                       " FROM runners r WHERE runner_id = ?1 AND (?2 = '' OR tenant_id IN ('', ?2))");
  q << id << tenant;
  if (!q.next()) return no_such("runner", "runner_id");
  return runner_row(q, now, live);
}

}  // namespace weir::sqlite
