#include "weir/sqlite/core.hpp"

#include "rows.hpp"
#include "schema.hpp"

namespace weir::sqlite {

using lease::LeaseRow;

namespace {
// The last heartbeat of a runner that is known to be dead: before lease time began, by more than runner_live can be.
constexpr LeaseTime kLongSilent{-24h};
}  // namespace

class Core::SqlRows final : public lease::Rows {
 public:
  SqlRows(Db& db, const LeaseLimits& limits) : db_(db), limits_(limits) {}

  std::optional<LeaseRow> find(const CameraId& camera) override {
    Query q = db_.query("SELECT " WEIR_LEASE_COLUMNS " FROM leases l WHERE l.camera_uuid = ?");
    q << camera;
    if (!q.next()) return std::nullopt;
    return lease_row(q);
  }
  void save(const LeaseRow& row) override {
    Query q = db_.query(
        "INSERT INTO leases VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,0,?,?) ON CONFLICT (camera_uuid) DO UPDATE SET "
        "tenant_id=excluded.tenant_id, site_id=excluded.site_id, assignable=excluded.assignable, "
        "owner_id=excluded.owner_id, boot_id=excluded.boot_id, version=excluded.version, "
        "grant_version=excluded.grant_version, last_key=excluded.last_key, expires=excluded.expires, "
        "ttl=excluded.ttl, released=excluded.released, revoked=excluded.revoked, "
        "previous_boot=excluded.previous_boot, previous_grant=excluded.previous_grant, "
        "acquired_at=excluded.acquired_at, cluster=excluded.cluster");
    q << row.subject << row.tenant << row.site << row.assignable << row.owner.runner << row.owner.boot << row.version.n
      << row.grant.n << row.last_key << row.expires << row.ttl << row.released << row.revoked
      << (row.previous ? row.previous->boot : BootId()) << (row.previous ? row.previous->grant.n : 0)
      << row.acquired_at << lease::to_string(row.kind) << row.cluster;
    q.run();
  }
  bool boot_dead(const lease::Owner& owner) override {
    Query q = db_.query("SELECT dead FROM boots WHERE runner_id = ? AND boot_id = ?");
    q << owner.runner << owner.boot;
    return q.next() && q.integer(0) != 0;
  }
  bool cordoned(const RunnerId& runner) override {
    Query q = db_.query("SELECT cordoned OR drain <> 'none' FROM runners WHERE runner_id = ?");
    q << runner;
    return q.next() && q.integer(0) != 0;
  }
  bool avoided(const CameraId& camera, const RunnerId& runner, LeaseTime now) override {
    Query q = db_.query("SELECT 1 FROM avoids WHERE camera_uuid = ? AND runner_id = ? AND until > ?");
    q << camera << runner << now;
    return q.next();
  }
  // A runner that let this very lease run out does not count as one that can take the camera.
  bool other_eligible(const CameraId& camera, const RunnerId& runner, LeaseTime now) override {
    Query q = db_.query(
        "SELECT 1 FROM leases l, runners r WHERE l.camera_uuid = ?1 AND r.runner_id <> ?2 AND r.cordoned = 0 "
        "AND r.drain = 'none' AND r.heartbeat_at > ?3 AND r.tenant_id IN ('', l.tenant_id) "
        "AND r.site_id IN ('', l.site_id) AND r.capacity > "
        "(SELECT count(*) FROM leases o WHERE o.owner_id = r.runner_id AND o.released = 0 AND o.kind = 'camera') "
        "AND NOT (l.owner_id = r.runner_id AND l.released = 0 AND l.expires <= ?4) "
        "AND NOT EXISTS (SELECT 1 FROM avoids a WHERE a.camera_uuid = l.camera_uuid AND a.runner_id = r.runner_id "
        "AND a.until > ?4) LIMIT 1");
    q << camera << runner << (now - limits_.runner_live) << now;
    return q.next();
  }
  void add_avoid(const CameraId& camera, const RunnerId& runner, LeaseTime now) override {
    int strikes = 1;
    {
      Query q = db_.query("SELECT strikes FROM avoids WHERE camera_uuid = ? AND runner_id = ?");
      q << camera << runner;
      if (q.next()) strikes = static_cast<int>(q.integer(0)) + 1;
    }
    put_avoid(camera, runner, now + lease::avoid_duration(strikes), strikes);
  }
  void empty_buckets(LeaseTime now) override {
    Query q = db_.query("UPDATE sites SET tokens = 0, budget_updated = ?");
    q << now;
    q.run();
  }
  void put_avoid(const CameraId& camera, const RunnerId& runner, LeaseTime until, int strikes) {
    Query q = db_.query("INSERT OR REPLACE INTO avoids VALUES (?, ?, ?, ?)");
    q << camera << runner << until << strikes;
    q.run();
  }

 private:
  Db& db_;
  const LeaseLimits& limits_;
};

Core::Core(const std::string& path, LeaseLimits limits, std::function<WallTime()> clock)
    : limits_(limits), clock_(std::move(clock)), db_(std::make_shared<Db>(path, false)) {
  migrate(*db_);
  reader_ = path == ":memory:" ? std::make_unique<Reader>(db_) : std::make_unique<Reader>(path);
  Query q = db_->query(
      "SELECT epoch, counter, lease_now, mark, hold_until, hold_opened, closed_until FROM store_state");
  WEIR_ASSERT(q.next());
  state_ = {q.integer(0),    q.integer(1),    q.lease_time(2), q.wall(3),
            q.lease_time(4), q.lease_time(5), q.lease_time(6)};
  if (state_.mark == WallTime{}) state_.mark = clock_();  // a new file: nobody was away
  kept_ = state_;
}

Core::~Core() = default;

void Core::begin() {
  at_begin_ = state_;
  db_->query("BEGIN IMMEDIATE").run();
}

bool Core::commit() {
  bool moved = !(state_ == at_begin_);
  if (moved) {
    Query q = db_->query(
        "UPDATE store_state SET epoch=?, counter=?, lease_now=?, mark=?, hold_until=?, hold_opened=?, closed_until=?");
    q << state_.epoch << state_.counter << state_.lease_now << state_.mark << state_.hold_until << state_.hold_opened
      << state_.closed_until;
    q.run();
  }
  db_->query("COMMIT").run();
  if (moved) kept_ = state_;
  return moved;
}

// As after a restart. In the time that passed since the last commit no holder could renew, and no asker was given a
// version: each version is drawn in a transaction that moves the state.
void Core::rollback() {
  state_ = kept_;
  if (db_->in_transaction()) db_->script("ROLLBACK");
}

void Core::mark_job() {
  at_mark_ = state_;
  db_->query("SAVEPOINT job").run();
}
void Core::keep_job() { db_->query("RELEASE job").run(); }
void Core::undo_job() {
  state_ = at_mark_;
  db_->query("ROLLBACK TO job").run();
  db_->query("RELEASE job").run();
}

bool Core::tick() {
  WallTime clock = clock_();
  Duration longest{0};
  if (Duration passed = clock - state_.mark; passed > lease::kGapMin || passed < Duration(0)) {
    Query q = db_->query("SELECT coalesce(max(ttl), 0) FROM leases WHERE released = 0");
    q.next();
    longest = q.duration(0);
  }
  return lease::tick(state_, clock, longest);
}

LeaseTime Core::now() const { return lease::lease_time(state_, clock_()); }
lease::Version Core::draw() { return lease::Version::make(state_.epoch, ++state_.counter); }

std::vector<lease::Answer> Core::apply(const lease::Batch& batch) {
  tick();
  SqlRows rows(*db_, limits_);
  return lease::apply(rows, state_, batch, clock_(), limits_.ttl_max).answers;
}

Result<LeaseView> Core::revoke(const CameraId& camera, const TenantId& tenant) {
  SqlRows rows(*db_, limits_);
  auto row = rows.find(camera);
  if (!row || (!tenant.empty() && row->tenant != tenant)) return no_such("camera", "camera_uuid");
  if (!row->released) {
    if (row->kind == lease::Kind::camera && !row->owner.runner.empty())
      rows.put_avoid(camera, row->owner.runner, now() + lease::kRevokedAvoid, 0);
    rows.save(lease::revoke(*row, draw()));
  }
  return Reader(db_).show(camera, tenant, now(), clock_());
}

// Asked again it answers the same: the control plane that asked before may have died before it announced the releases.
Result<std::vector<LeaseRow>> Core::release_all(const lease::Owner& owner, const std::string& will_sha256) {
  std::int64_t will_after = lease::Version::make(state_.epoch, state_.counter).n;
  {
    Query q = db_->query("SELECT will_sha256, dead, will_after FROM boots WHERE runner_id = ? AND boot_id = ?");
    q << owner.runner << owner.boot;
    if (!q.next() || q.text(0).empty() || !equal_constant_time(q.text(0), will_sha256))
      return Error{Errc::unauthorized, "will_refused", "this boot's last will was not signed with its secret"};
    if (q.integer(1) != 0) will_after = q.integer(2);
  }
  {
    Query dead = db_->query("UPDATE boots SET dead = 1, will_after = ? WHERE runner_id = ? AND boot_id = ?");
    dead << will_after << owner.runner << owner.boot;
    dead.run();
  }
  {
    Query silent = db_->query("UPDATE runners SET heartbeat_at = ? WHERE runner_id = ? AND boot_id = ?");
    silent << kLongSilent << owner.runner << owner.boot;
    silent.run();
  }
  std::vector<LeaseRow> held;
  {
    Query q = db_->query("SELECT " WEIR_LEASE_COLUMNS
                         " FROM leases l WHERE owner_id = ? AND boot_id = ? AND released = 0 ORDER BY camera_uuid");
    q << owner.runner << owner.boot;
    while (q.next()) held.push_back(lease_row(q));
  }
  SqlRows rows(*db_, limits_);
  for (LeaseRow& row : held) {
    row.version = draw();
    row.released = true;
    row.last_key.clear();
    rows.save(row);
  }
  std::vector<LeaseRow> released;
  Query q = db_->query("SELECT " WEIR_LEASE_COLUMNS
                       " FROM leases l WHERE owner_id = ?1 AND boot_id = ?2 AND released = 1 AND revoked = 0"
                       " AND ?3 > 0 AND version > ?3 ORDER BY camera_uuid");
  q << owner.runner << owner.boot << will_after;
  while (q.next()) released.push_back(lease_row(q));
  return released;
}

// A scan: an index over expiries would have to follow every renewal.
std::vector<LeaseRow> Core::take_expired(int most) {
  std::vector<LeaseRow> expired;
  lease::Moment moment = lease::moment_of(state_, clock_());
  if (!lease::settled(moment)) return expired;
  {
    Query q = db_->query("SELECT " WEIR_LEASE_COLUMNS
                         " FROM leases l WHERE released = 0 AND expires <= ? AND expiry_told <> expires LIMIT ?");
    q << moment.now << most;
    while (q.next()) expired.push_back(lease_row(q));
  }
  for (const LeaseRow& row : expired) {
    Query q = db_->query("UPDATE leases SET expiry_told = expires WHERE camera_uuid = ?");
    q << row.subject;
    q.run();
  }
  return expired;
}

Result<BudgetAnswer> Core::consume(const SiteId& site, const TenantId& tenant, const std::optional<BudgetUse>& use) {
  tick();
  TRY(found, Reader(db_).show_site(site, tenant, now()));
  BudgetAnswer answer{true, found.budget.tokens, found.budget.capacity};
  if (use) {
    Query q = db_->query(
        "SELECT coalesce(b.grant_version, 0) FROM leases l LEFT JOIN budget_uses b USING (camera_uuid) "
        "WHERE l.camera_uuid = ? AND l.site_id = ?");
    q << use->camera << site;
    if (!q.next()) return no_such("camera", "camera_uuid");
    if (q.integer(0) == use->grant.n) return answer;
  }
  bucket::Consumed consumed = bucket::consume(found.budget, now());
  {
    Query q = db_->query("UPDATE sites SET tokens = ?, budget_updated = ? WHERE site_id = ?");
    q << consumed.next.tokens << consumed.next.updated << site;
    q.run();
  }
  if (use && consumed.granted) {
    Query q = db_->query("INSERT OR REPLACE INTO budget_uses VALUES (?, ?)");
    q << use->camera << use->grant.n;
    q.run();
  }
  return BudgetAnswer{consumed.granted, consumed.next.tokens, consumed.next.capacity, consumed.retry_after};
}

void Core::put_in_charge(const camera::Config& config, const lease::Charge& charge) {
  SqlRows rows(*db_, limits_);
  LeaseRow row = rows.find(config.camera).value_or(LeaseRow{config.camera});
  row.tenant = config.tenant;
  row.site = config.site;
  auto next = lease::Version::make(state_.epoch, state_.counter + 1);
  lease::Charged charged = lease::put_in_charge(std::move(row), charge, next);
  if (charged.drew) ++state_.counter;
  rows.save(charged.row);
}

// ---- catalog ----

Result<Tenant> Core::add_tenant(Tenant tenant) {
  tenant.created_at = clock_();
  Query q = db_->query("INSERT OR IGNORE INTO tenants VALUES (?, ?, ?)");
  q << tenant.id << tenant.name << tenant.created_at;
  if (q.run() == 0) return exists_already("tenant", "tenant_id");
  return tenant;
}

Result<Nothing> Core::remove_tenant(const TenantId& id) {
  {
    Query q = db_->query("SELECT 1 FROM sites WHERE tenant_id = ?");
    q << id;
    if (q.next()) return not_empty("tenant", "sites");
  }
  {
    Query q = db_->query(
        "SELECT 1 FROM models WHERE tenant_id = ?1 UNION ALL SELECT 1 FROM displays WHERE tenant_id = ?1");
    q << id;
    if (q.next()) return not_empty("tenant", "models or displays");
  }
  Query q = db_->query("DELETE FROM tenants WHERE tenant_id = ?");
  q << id;
  if (q.run() == 0) return no_such("tenant", "tenant_id");
  return ok();
}

Result<Site> Core::add_site(Site site) {
  {
    Query q = db_->query("SELECT 1 FROM tenants WHERE tenant_id = ?");
    q << site.tenant;
    if (!q.next()) return no_such("tenant", "tenant_id");
  }
  site.created_at = clock_();
  site.budget.updated = now();
  Query q = db_->query("INSERT OR IGNORE INTO sites VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  q << site.id << site.tenant << site.name << site.budget.tokens << site.budget.capacity << site.budget.refill_per_min
    << site.budget.updated << site.created_at;
  if (q.run() == 0) return exists_already("site", "site_id");
  return site;
}

Result<Nothing> Core::remove_site(const SiteId& id, const TenantId& tenant) {
  TRY(site, Reader(db_).show_site(id, tenant, now()));
  {
    Query q = db_->query("SELECT 1 FROM cameras WHERE tenant_id = ? AND site_id = ?");
    q << site.tenant << id;
    if (q.next()) return not_empty("site", "cameras");
  }
  Query q = db_->query("DELETE FROM sites WHERE site_id = ?");
  q << id;
  q.run();
  return ok();
}

Result<Site> Core::set_budget(const SiteId& id, const TenantId& tenant, double capacity, double refill_per_min,
                              std::optional<double> tokens) {
  tick();
  TRY(site, Reader(db_).show_site(id, tenant, now()));
  site.budget.capacity = capacity;
  site.budget.refill_per_min = refill_per_min;
  site.budget.tokens = std::min(capacity, tokens.value_or(site.budget.tokens));
  Query q = db_->query(
      "UPDATE sites SET tokens = ?, capacity = ?, refill_per_min = ?, budget_updated = ? WHERE site_id = ?");
  q << site.budget.tokens << capacity << refill_per_min << site.budget.updated << id;
  q.run();
  return std::move(site);
}

Result<CameraRecord> Core::add_camera(const camera::Config& config) {
  {
    Query q = db_->query("SELECT 1 FROM sites WHERE site_id = ? AND tenant_id = ?");
    q << config.site << config.tenant;
    if (!q.next()) return no_such("site", "site_id");
  }
  if (auto row = SqlRows(*db_, limits_).find(config.camera); row && row->kind != lease::Kind::camera)
    return exists_already("camera", "camera_uuid");
  TRY(kept, keep(config));
  WallTime at = clock_();
  Query q = db_->query("INSERT OR IGNORE INTO cameras VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)");
  q << config.camera << config.tenant << config.site << config.enabled << kept.text << at << at << at;
  if (q.run() == 0) return exists_already("camera", "camera_uuid");
  put_in_charge(config, charge_of(config));
  return CameraRecord{std::move(kept.config), at, at, at};
}

Result<CameraRecord> Core::edit_camera(const CameraId& id, const TenantId& tenant,
                                       const Cameras::CameraEdit& change) {
  TRY(present, Reader(db_).show_camera(id, tenant));
  TRY(config, change(present));
  TRY(kept, keep(config));
  CameraRecord next = edited(present, std::move(config), clock_());
  next.config = std::move(kept.config);
  Query q = db_->query(
      "UPDATE cameras SET enabled = ?, config = ?, updated_at = ?, configured_at = ?, crashes = ? WHERE camera_uuid = ?");
  q << next.config.enabled << kept.text << next.updated_at << next.configured_at << next.crashes << id;
  q.run();
  lease::Charge charge = charge_of(next.config);
  if (charge != charge_of(present.config)) put_in_charge(next.config, charge);
  return next;
}

Result<int> Core::count_crash(const CameraId& id, const TenantId& tenant) {
  Query q = db_->query(
      "UPDATE cameras SET crashes = crashes + 1 WHERE camera_uuid = ?1 AND (?2 = '' OR tenant_id = ?2) "
      "RETURNING crashes");
  q << id << tenant;
  if (!q.next()) return no_such("camera", "camera_uuid");
  return static_cast<int>(q.integer(0));
}

Result<Nothing> Core::remove_camera(const CameraId& id, const TenantId& tenant) {
  Query q = db_->query(
      "DELETE FROM cameras WHERE camera_uuid = ?1 AND (?2 = '' OR tenant_id = ?2) RETURNING tenant_id, site_id");
  q << id << tenant;
  if (!q.next()) return no_such("camera", "camera_uuid");
  camera::Config gone;
  gone.camera = id;
  gone.tenant = q.id<TenantId>(0);
  gone.site = q.id<SiteId>(1);
  put_in_charge(gone, {.assignable = false});
  return ok();
}

Result<Runner> Core::register_runner(Runner runner, const std::string& will_sha256, const TenantId& tenant) {
  tick();
  runner.said_capacity = runner.capacity;
  if (auto before = Reader(db_).show_runner(runner.id, {}, now(), limits_.runner_live)) {
    TRY(free, may_register_again(*before, runner, tenant));
    keep_orders(*before, runner);
  }
  if (!runner.boot.empty()) {
    Query q = db_->query("INSERT INTO boots VALUES (?, ?, ?, 0, ?, 0) ON CONFLICT DO NOTHING");
    q << runner.id << runner.boot << will_sha256 << clock_();
    if (q.run() == 0) return Error{Errc::conflict, "boot_known", "this boot_id was registered before"};
  }
  {
    Query q = db_->query(
        "INSERT INTO runners VALUES (?1, ?2, ?3, ?4, ?5, 0, 'none', ?6, '{}', 0, ?7, ?8, ?8) "
        "ON CONFLICT (runner_id) DO UPDATE SET tenant_id = ?2, site_id = ?3, about = ?4, capacity = ?5, boot_id = ?6, "
        "heartbeat_at = ?7, registered_at = ?8, last_heartbeat = ?8");
    q << runner.id << runner.tenant << runner.site << json::to_text(write_about(runner)) << runner.capacity
      << runner.boot << now() << clock_();
    q.run();
  }
  return Reader(db_).show_runner(runner.id, {}, now(), limits_.runner_live);
}

Result<RunnerOrders> Core::heartbeat(const RunnerId& id, const TenantId& tenant, const boost::json::object& body,
                                     int streams_owned) {
  tick();
  Query q = db_->query(
      "UPDATE runners SET heartbeat = ?3, streams_owned = ?4, heartbeat_at = ?5, last_heartbeat = ?6 "
      "WHERE runner_id = ?1 AND (?2 = '' OR tenant_id = ?2) RETURNING cordoned, drain, capacity");
  q << id << tenant << json::to_text(body) << streams_owned << now() << clock_();
  if (!q.next()) {
    TRY(seen, commanded(Reader(db_).show_runner(id, tenant, now(), limits_.runner_live), tenant));
    return no_such("runner", "runner_id");
  }
  return RunnerOrders{q.integer(0) != 0, drain_mode(q.text(1)), static_cast<int>(q.integer(2))};
}

Result<Runner> Core::change_runner(const RunnerId& id, const TenantId& tenant, const RunnerChange& change) {
  TRY(runner, commanded(Reader(db_).show_runner(id, tenant, now(), limits_.runner_live), tenant));
  Runner next = changed(std::move(runner), change);
  Query q = db_->query("UPDATE runners SET cordoned = ?, drain = ?, capacity = ?, about = ? WHERE runner_id = ?");
  q << next.cordoned << std::string(json::write_value(next.drain).as_string()) << next.capacity
    << json::to_text(write_about(next)) << id;
  q.run();
  return next;
}

Result<Nothing> Core::remove_runner(const RunnerId& id, const TenantId& tenant) {
  TRY(runner, commanded(Reader(db_).show_runner(id, tenant, now(), limits_.runner_live), tenant));
  if (runner.leases_held > 0) return not_empty("runner", "leases");
  Query q = db_->query("DELETE FROM runners WHERE runner_id = ?");
  q << id;
  q.run();
  return ok();
}

}  // namespace weir::sqlite
