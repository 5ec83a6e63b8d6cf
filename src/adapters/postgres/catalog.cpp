#include "catalog.hpp"

#include "weir/base/log_once.hpp"

namespace weir::postgres {

namespace {

WallTime wall(const Rows& r, int i, int column) { return WallTime(Duration(r.integer(i, column))); }

#define WEIR_CAMERA_COLUMNS "config, created_at, updated_at, configured_at, crashes, camera_uuid"
#define WEIR_SITE                                                                                          \
  "SELECT s.site_id, s.tenant_id, s.name, s.tokens, s.capacity, s.refill_per_min, s.budget_updated, s.created_at, " \
  "m.now FROM sites s CROSS JOIN weir_moment m "
#define WEIR_RUNNER                                                                                              \
  "SELECT r.runner_id, r.tenant_id, r.site_id, r.about, r.capacity, r.cordoned, r.drain, r.boot_id, r.heartbeat, " \
  "r.streams_owned, r.heartbeat_at, r.registered_at, r.last_heartbeat, "                                         \
  "(SELECT count(*) FROM leases o WHERE o.owner_id = r.runner_id AND NOT o.released AND o.kind = 'camera'), m.now "                    \
  "FROM runners r CROSS JOIN weir_moment m "

Site site_row(const Rows& r, int i) {
  Site site;
  site.id = r.id<SiteId>(i, 0);
  site.tenant = r.id<TenantId>(i, 1);
  site.name = r.text(i, 2);
  site.budget = {r.number(i, 3), r.number(i, 4), r.number(i, 5), LeaseTime(Duration(r.integer(i, 6)))};
  site.budget = bucket::refilled(site.budget, LeaseTime(Duration(r.integer(i, 8))));
  site.created_at = wall(r, i, 7);
  return site;
}

Result<CameraRecord> camera_row(const Rows& r, int i) {
  TRY(config, read_kept(r.view(i, 0)));
  return CameraRecord{std::move(config), wall(r, i, 1), wall(r, i, 2), wall(r, i, 3),
                      static_cast<int>(r.integer(i, 4))};
}

Runner runner_row(const Rows& r, int i, const LeaseLimits& limits) {
  Runner runner;
  runner.id = r.id<RunnerId>(i, 0);
  runner.tenant = r.id<TenantId>(i, 1);
  runner.site = r.id<SiteId>(i, 2);
  if (auto about = json::parse_text(r.view(i, 3))) read_about(*about, runner);
  runner.capacity = static_cast<int>(r.integer(i, 4));
  runner.cordoned = r.flag(i, 5);
  runner.drain = drain_mode(r.view(i, 6));
  runner.boot = r.id<BootId>(i, 7);
  if (auto body = json::parse_text(r.view(i, 8)); body && body->is_object()) runner.heartbeat = body->get_object();
  runner.streams_owned = static_cast<int>(r.integer(i, 9));
  runner.live = Duration(r.integer(i, 14) - r.integer(i, 10)) < limits.runner_live;
  runner.registered_at = wall(r, i, 11);
  runner.last_heartbeat = wall(r, i, 12);
  runner.leases_held = static_cast<int>(r.integer(i, 13));
  return runner;
}

void put_in_charge(Connection& c, const camera::Config& config, const lease::Charge& charge,
                   const LeaseLimits& limits) {
  c.query("SELECT weir_put_in_charge($1::text, $2::text, $3::text, $4::boolean, $5::text, $6::bigint)",
          Params() << config.camera << config.tenant << config.site << charge.assignable << charge.cluster
                   << limits.ttl_max);
}

}  // namespace

Result<Tenant> add_tenant(Connection& c, Tenant tenant) {
  Rows rows = c.query(
      "INSERT INTO tenants VALUES ($1::text, $2::text, weir_clock()) ON CONFLICT DO NOTHING RETURNING created_at",
      Params() << tenant.id << tenant.name);
  if (rows.size() == 0) return exists_already("tenant", "tenant_id");
  tenant.created_at = wall(rows, 0, 0);
  return tenant;
}

std::vector<Tenant> list_tenants(Connection& c, const TenantId& only, const TenantId& after, int limit) {
  Rows rows = c.query(
      "SELECT tenant_id, name, created_at FROM tenants WHERE tenant_id > $1::text AND ($2::text = '' OR tenant_id = $2)"
      " ORDER BY tenant_id LIMIT $3::int",
      Params() << after << only << limit);
  std::vector<Tenant> tenants;
  for (int i = 0; i < rows.size(); ++i) tenants.push_back({rows.id<TenantId>(i, 0), rows.text(i, 1), wall(rows, i, 2)});
  return tenants;
}

Result<Nothing> remove_tenant(Connection& c, const TenantId& id) {
  Rows rows = c.query(
      "WITH busy AS (SELECT 'sites' AS what FROM sites WHERE tenant_id = $1::text UNION ALL"
      " SELECT 'models or displays' FROM models WHERE tenant_id = $1 UNION ALL"
      " SELECT 'models or displays' FROM displays WHERE tenant_id = $1 LIMIT 1), gone AS (DELETE FROM tenants"
      " WHERE tenant_id = $1::text AND NOT EXISTS (SELECT 1 FROM busy) RETURNING 1)"
      " SELECT coalesce((SELECT what FROM busy), ''), EXISTS (SELECT 1 FROM gone)",
      Params() << id);
  if (!rows.view(0, 0).empty()) return not_empty("tenant", rows.view(0, 0));
  if (!rows.flag(0, 1)) return no_such("tenant", "tenant_id");
  return ok();
}

Result<Site> add_site(Connection& c, Site site) {
  Rows rows = c.query(
      "WITH t AS (SELECT tenant_id FROM tenants WHERE tenant_id = $2::text FOR KEY SHARE), added AS (INSERT INTO sites"
      " SELECT $1::text, t.tenant_id, $3::text, $4::float8, $5::float8, $6::float8, m.now, m.clock"
      " FROM t CROSS JOIN weir_moment m ON CONFLICT DO NOTHING RETURNING created_at, budget_updated)"
      " SELECT EXISTS (SELECT 1 FROM t), (SELECT created_at FROM added), (SELECT budget_updated FROM added)",
      Params() << site.id << site.tenant << site.name << site.budget.tokens << site.budget.capacity
               << site.budget.refill_per_min);
  if (!rows.flag(0, 0)) return no_such("tenant", "tenant_id");
  if (rows.is_null(0, 1)) return exists_already("site", "site_id");
  site.created_at = wall(rows, 0, 1);
  site.budget.updated = LeaseTime(Duration(rows.integer(0, 2)));
  return site;
}

std::vector<Site> list_sites(Connection& c, const TenantId& tenant, const SiteId& after, int limit) {
  Rows rows = c.query(WEIR_SITE
                      "WHERE s.site_id > $1::text AND ($2::text = '' OR s.tenant_id = $2) ORDER BY s.site_id"
                      " LIMIT $3::int",
                      Params() << after << tenant << limit);
  std::vector<Site> sites;
  for (int i = 0; i < rows.size(); ++i) sites.push_back(site_row(rows, i));
  return sites;
}

Result<Site> show_site(Connection& c, const SiteId& id, const TenantId& tenant) {
  Rows rows = c.query(WEIR_SITE "WHERE s.site_id = $1::text AND ($2::text = '' OR s.tenant_id = $2)",
                      Params() << id << tenant);
  if (rows.size() == 0) return no_such("site", "site_id");
  return site_row(rows, 0);
}

int count_cameras(Connection& c, const SiteId& id, const TenantId& tenant) {
  Rows rows = c.query(
      "SELECT count(*) FROM sites s JOIN cameras c ON c.tenant_id = s.tenant_id AND c.site_id = s.site_id"
      " WHERE s.site_id = $1::text AND ($2::text = '' OR s.tenant_id = $2) AND c.enabled",
      Params() << id << tenant);
  return static_cast<int>(rows.integer(0, 0));
}

Result<Nothing> remove_site(Connection& c, const SiteId& id, const TenantId& tenant) {
  TRY(site, show_site(c, id, tenant));
  Rows rows = c.query(
      "WITH busy AS (SELECT 1 FROM cameras WHERE site_id = $1::text LIMIT 1), gone AS (DELETE FROM sites"
      " WHERE site_id = $1::text AND NOT EXISTS (SELECT 1 FROM busy)) SELECT EXISTS (SELECT 1 FROM busy)",
      Params() << id);
  if (rows.flag(0, 0)) return not_empty("site", "cameras");
  return ok();
}

Result<Site> set_budget(Connection& c, const SiteId& id, const TenantId& tenant, double capacity,
                        double refill_per_min, std::optional<double> tokens) {
  Transaction tx(c);
  Rows rows = c.query("SELECT 1 FROM sites WHERE site_id = $1::text AND ($2::text = '' OR tenant_id = $2) FOR UPDATE",
                      Params() << id << tenant);
  if (rows.size() == 0) return no_such("site", "site_id");
  TRY(site, show_site(c, id, tenant));
  site.budget.capacity = capacity;
  site.budget.refill_per_min = refill_per_min;
  site.budget.tokens = std::min(capacity, tokens.value_or(site.budget.tokens));
  c.query(
      "UPDATE sites SET tokens = $2::float8, capacity = $3::float8, refill_per_min = $4::float8,"
      " budget_updated = $5::bigint WHERE site_id = $1::text",
      Params() << id << site.budget.tokens << capacity << refill_per_min << site.budget.updated.time_since_epoch());
  tx.commit();
  return std::move(site);
}

Result<CameraRecord> add_camera(Connection& c, const camera::Config& config, const LeaseLimits& limits) {
  TRY(kept, keep(config));
  Transaction tx(c);
  Rows site = c.query("SELECT 1 FROM sites WHERE site_id = $1::text AND tenant_id = $2::text FOR KEY SHARE",
                      Params() << config.site << config.tenant);
  if (site.size() == 0) return no_such("site", "site_id");
  Rows rows = c.query(
      "INSERT INTO cameras SELECT $1::text, $2::text, $3::text, $4::boolean, $5::text, k, k, k, 0"
      " FROM (SELECT weir_clock() AS k) t ON CONFLICT DO NOTHING RETURNING created_at",
      Params() << config.camera << config.tenant << config.site << config.enabled << kept.text);
  if (rows.size() == 0) return exists_already("camera", "camera_uuid");
  put_in_charge(c, config, charge_of(config), limits);
  Rows lease = c.query("SELECT kind FROM leases WHERE camera_uuid = $1::text", Params() << config.camera);
  if (lease.view(0, 0) != "camera") return exists_already("camera", "camera_uuid");
  tx.commit();
  return CameraRecord{std::move(kept.config), wall(rows, 0, 0), wall(rows, 0, 0), wall(rows, 0, 0)};
}

Result<std::vector<CameraRecord>> list_cameras(Connection& c, const CameraFilter& filter) {
  std::vector<CameraRecord> cameras;
  CameraId after = filter.after;
  for (bool more = true; more;) {
    int wanted = filter.limit - static_cast<int>(cameras.size());
    Rows rows = c.query(
        "SELECT " WEIR_CAMERA_COLUMNS " FROM cameras WHERE camera_uuid > $1::text"
        " AND ($2::text = '' OR tenant_id = $2) AND ($3::text = '' OR site_id = $3)"
        " AND ($4::int < 0 OR enabled = ($4::int = 1)) ORDER BY camera_uuid LIMIT $5::int",
        Params() << after << filter.tenant << filter.site
                 << (filter.enabled ? static_cast<int>(*filter.enabled) : -1) << wanted);
    for (int i = 0; i < rows.size(); ++i) {
      auto record = camera_row(rows, i);
      after = rows.id<CameraId>(i, 5);
      if (record) cameras.push_back(*std::move(record));
      else log::error_once(kUnreadableCamera, record.error().message, "camera_uuid", after.str());
    }
    more = rows.size() == wanted && static_cast<int>(cameras.size()) < filter.limit;
  }
  return cameras;
}

Result<CameraRecord> show_camera(Connection& c, const CameraId& id, const TenantId& tenant) {
  Rows rows = c.query(
      "SELECT " WEIR_CAMERA_COLUMNS " FROM cameras WHERE camera_uuid = $1::text"
      " AND ($2::text = '' OR tenant_id = $2)",
      Params() << id << tenant);
  if (rows.size() == 0) return no_such("camera", "camera_uuid");
  return camera_row(rows, 0);
}

Result<CameraRecord> edit_camera(Connection& c, const CameraId& id, const TenantId& tenant,
                                 const Cameras::CameraEdit& change, const LeaseLimits& limits) {
  Transaction tx(c);
  Rows rows = c.query(
      "SELECT " WEIR_CAMERA_COLUMNS ", weir_clock() FROM cameras WHERE camera_uuid = $1::text"
      " AND ($2::text = '' OR tenant_id = $2) FOR UPDATE",
      Params() << id << tenant);
  if (rows.size() == 0) return no_such("camera", "camera_uuid");
  TRY(present, camera_row(rows, 0));
  TRY(config, change(present));
  TRY(kept, keep(config));
  CameraRecord next = edited(present, std::move(config), wall(rows, 0, 6));
  next.config = std::move(kept.config);
  c.query(
      "UPDATE cameras SET enabled = $2::boolean, config = $3::text, updated_at = $4::bigint,"
      " configured_at = $5::bigint, crashes = $6::int WHERE camera_uuid = $1::text",
      Params() << id << next.config.enabled << kept.text << next.updated_at.time_since_epoch()
               << next.configured_at.time_since_epoch() << next.crashes);
  lease::Charge charge = charge_of(next.config);
  if (charge != charge_of(present.config)) put_in_charge(c, next.config, charge, limits);
  tx.commit();
  return next;
}

Result<int> count_crash(Connection& c, const CameraId& id, const TenantId& tenant) {
  Rows rows = c.query(
      "UPDATE cameras SET crashes = crashes + 1 WHERE camera_uuid = $1::text AND ($2::text = '' OR tenant_id = $2)"
      " RETURNING crashes",
      Params() << id << tenant);
  if (rows.size() == 0) return no_such("camera", "camera_uuid");
  return static_cast<int>(rows.integer(0, 0));
}

Result<Nothing> remove_camera(Connection& c, const CameraId& id, const TenantId& tenant, const LeaseLimits& limits) {
  Transaction tx(c);
  Rows rows = c.query(
      "DELETE FROM cameras WHERE camera_uuid = $1::text AND ($2::text = '' OR tenant_id = $2)"
      " RETURNING tenant_id, site_id",
      Params() << id << tenant);
  if (rows.size() == 0) return no_such("camera", "camera_uuid");
  camera::Config gone;
  gone.camera = id;
  gone.tenant = rows.id<TenantId>(0, 0);
  gone.site = rows.id<SiteId>(0, 1);
  put_in_charge(c, gone, {.assignable = false}, limits);
  tx.commit();
  return ok();
}

Result<Runner> register_runner(Connection& c, Runner runner, const std::string& will_sha256, const TenantId& tenant,
                               const LeaseLimits& limits) {
  Transaction tx(c);
  // The lock is on the runner's name, because there may be no row yet: of two tenants only the first gets the name.
  c.query("SELECT pg_advisory_xact_lock(hashtextextended($1::text, 8675309116))", Params() << runner.id);
  c.query("SELECT 1 FROM runners WHERE runner_id = $1::text FOR UPDATE", Params() << runner.id);
  runner.said_capacity = runner.capacity;
  if (auto before = show_runner(c, runner.id, {}, limits)) {
    TRY(free, may_register_again(*before, runner, tenant));
    keep_orders(*before, runner);
  }
  if (!runner.boot.empty()) {
    Rows boot = c.query(
        "INSERT INTO boots VALUES ($1::text, $2::text, $3::text, false, weir_clock()) ON CONFLICT DO NOTHING RETURNING 1",
        Params() << runner.id << runner.boot << will_sha256);
    if (boot.size() == 0) return Error{Errc::conflict, "boot_known", "this boot_id was registered before"};
  }
  c.query(
      "INSERT INTO runners SELECT $1::text, $2::text, $3::text, $4::text, $5::int, false, 'none', $6::text, '{}', 0,"
      " m.now, m.clock, m.clock FROM weir_moment m ON CONFLICT (runner_id) DO UPDATE SET"
      " tenant_id = excluded.tenant_id, site_id = excluded.site_id, about = excluded.about,"
      " capacity = excluded.capacity, boot_id = excluded.boot_id, heartbeat_at = excluded.heartbeat_at,"
      " registered_at = excluded.registered_at, last_heartbeat = excluded.last_heartbeat",
      Params() << runner.id << runner.tenant << runner.site << json::to_text(write_about(runner)) << runner.capacity
               << runner.boot);
  tx.commit();
  return show_runner(c, runner.id, {}, limits);
}

namespace {
// Why the caller found no runner that it may command.
Error no_commanded(Connection& c, const RunnerId& id, const TenantId& tenant, const LeaseLimits& limits) {
  auto seen = commanded(show_runner(c, id, tenant, limits), tenant);
  return seen ? no_such("runner", "runner_id") : std::move(seen).error();
}
}  // namespace

Result<RunnerOrders> heartbeat(Connection& c, const RunnerId& id, const TenantId& tenant,
                               const boost::json::object& body, int streams_owned, const LeaseLimits& limits) {
  Rows rows = c.query(
      "UPDATE runners r SET heartbeat = $3::text, streams_owned = $4::int, heartbeat_at = m.now, last_heartbeat = m.clock"
      " FROM weir_moment m WHERE r.runner_id = $1::text AND ($2::text = '' OR r.tenant_id = $2)"
      " RETURNING r.cordoned, r.drain, r.capacity",
      Params() << id << tenant << json::to_text(body) << streams_owned);
  if (rows.size() == 0) return no_commanded(c, id, tenant, limits);
  return RunnerOrders{rows.flag(0, 0), drain_mode(rows.view(0, 1)), static_cast<int>(rows.integer(0, 2))};
}

std::vector<Runner> list_runners(Connection& c, const TenantId& tenant, const RunnerId& after, int limit,
                                 const LeaseLimits& limits) {
  Rows rows = c.query(WEIR_RUNNER
                      "WHERE r.runner_id > $1::text AND ($2::text = '' OR r.tenant_id IN ('', $2))"
                      " ORDER BY r.runner_id LIMIT $3::int",
                      Params() << after << tenant << limit);
  std::vector<Runner> runners;
  for (int i = 0; i < rows.size(); ++i) runners.push_back(runner_row(rows, i, limits));
  return runners;
}

Result<Runner> show_runner(Connection& c, const RunnerId& id, const TenantId& tenant, const LeaseLimits& limits) {
  Rows rows = c.query(WEIR_RUNNER "WHERE r.runner_id = $1::text AND ($2::text = '' OR r.tenant_id IN ('', $2))",
                      Params() << id << tenant);
  if (rows.size() == 0) return no_such("runner", "runner_id");
  return runner_row(rows, 0, limits);
}

Result<Runner> change_runner(Connection& c, const RunnerId& id, const TenantId& tenant, const RunnerChange& change,
                             const LeaseLimits& limits) {
  Transaction tx(c);
  c.query("SELECT 1 FROM runners WHERE runner_id = $1::text FOR UPDATE", Params() << id);
  TRY(runner, commanded(show_runner(c, id, tenant, limits), tenant));
  Runner next = changed(std::move(runner), change);
  c.query("UPDATE runners SET cordoned = $2::boolean, drain = $3::text, capacity = $4::int, about = $5::text"
          " WHERE runner_id = $1::text",
          Params() << id << next.cordoned << std::string(json::write_value(next.drain).as_string()) << next.capacity
                   << json::to_text(write_about(next)));
  tx.commit();
  return next;
}

Result<Nothing> remove_runner(Connection& c, const RunnerId& id, const TenantId& tenant, const LeaseLimits& limits) {
  TRY(runner, commanded(show_runner(c, id, tenant, limits), tenant));
  if (runner.leases_held > 0) return not_empty("runner", "leases");
  c.query("DELETE FROM runners WHERE runner_id = $1::text", Params() << id);
  return ok();
}

}  // namespace weir::postgres
