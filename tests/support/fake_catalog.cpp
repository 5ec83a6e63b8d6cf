// The catalogue of the fake: tenants, sites, cameras and runners.
#include "fake_store.hpp"

#include <algorithm>

namespace weir::test {

namespace {
bool runner_foreign(const TenantId& asker, const Runner& runner) {
  return !runner.tenant.empty() && foreign(asker, runner.tenant);
}
}  // namespace

void FakeCatalog::put_in_charge(const camera::Config& config, const lease::Charge& charge) {
  lease::LeaseRow& row = rows_.leases.try_emplace(config.camera, lease::LeaseRow{config.camera}).first->second;
  row.tenant = config.tenant;
  row.site = config.site;
  auto next = lease::Version::make(rows_.state.epoch, rows_.state.counter + 1);
  lease::Charged charged = lease::put_in_charge(row, charge, next);
  if (charged.drew) ++rows_.state.counter;
  row = std::move(charged.row);
}

Runner FakeCatalog::as_shown(const Runner& runner) const {
  Runner out = runner;
  out.leases_held = held_by(runner.id);
  out.live = now() - rows_.heartbeats.at(runner.id) < limits_.runner_live;
  return out;
}

Async<Nothing> FakeCatalog::ping() { co_return ok(); }
Async<Tenant> FakeCatalog::add_tenant(Tenant tenant) {
  tenant.created_at = clock_();
  if (!rows_.tenants.emplace(tenant.id, tenant).second) co_return exists_already("tenant", "tenant_id");
  co_return tenant;
}
Async<std::vector<Tenant>> FakeCatalog::list_tenants(TenantId only, TenantId after, int limit) {
  std::vector<Tenant> out;
  for (auto at = rows_.tenants.upper_bound(after); at != rows_.tenants.end() && static_cast<int>(out.size()) < limit; ++at)
    if (!foreign(only, at->first)) out.push_back(at->second);
  co_return out;
}
Async<Nothing> FakeCatalog::remove_tenant(TenantId id) {
  for (const auto& [site_id, site] : rows_.sites)
    if (site.tenant == id) co_return not_empty("tenant", "sites");
  auto of_it = [&](const auto& each) { return each.second.tenant == id; };
  if (std::ranges::any_of(rows_.models, of_it) || std::ranges::any_of(rows_.displays, of_it))
    co_return not_empty("tenant", "models or displays");
  if (rows_.tenants.erase(id) == 0) co_return no_such("tenant", "tenant_id");
  std::erase_if(rows_.keys, [&](const auto& each) { return each.second.tenant == id; });
  co_return ok();
}
Async<Site> FakeCatalog::add_site(Site site) {
  if (!rows_.tenants.contains(site.tenant)) co_return no_such("tenant", "tenant_id");
  site.created_at = clock_();
  site.budget.updated = now();
  if (!rows_.sites.emplace(site.id, site).second) co_return exists_already("site", "site_id");
  co_return site;
}
Async<std::vector<Site>> FakeCatalog::list_sites(TenantId tenant, SiteId after, int limit) {
  std::vector<Site> out;
  for (auto at = rows_.sites.upper_bound(after); at != rows_.sites.end() && static_cast<int>(out.size()) < limit; ++at)
    if (!foreign(tenant, at->second.tenant)) out.push_back(at->second);
  co_return out;
}
Async<Site> FakeCatalog::show_site(SiteId id, TenantId tenant) {
  auto at = rows_.sites.find(id);
  if (at == rows_.sites.end() || foreign(tenant, at->second.tenant)) co_return no_such("site", "site_id");
  Site site = at->second;
  site.budget = bucket::refilled(site.budget, now());
  co_return site;
}
Async<int> FakeCatalog::count_cameras(SiteId id, TenantId tenant) {
  co_return static_cast<int>(std::ranges::count_if(rows_.cameras, [&](const auto& each) {
    const camera::Config& config = each.second.config;
    return config.site == id && config.enabled && !foreign(tenant, config.tenant);
  }));
}
Async<Nothing> FakeCatalog::remove_site(SiteId id, TenantId tenant) {
  auto at = rows_.sites.find(id);
  if (at == rows_.sites.end() || foreign(tenant, at->second.tenant)) co_return no_such("site", "site_id");
  for (const auto& [camera, record] : rows_.cameras)
    if (record.config.site == id) co_return not_empty("site", "cameras");
  rows_.sites.erase(at);
  co_return ok();
}
Async<Site> FakeCatalog::set_budget(SiteId id, TenantId tenant, double capacity, double refill_per_min,
                                  std::optional<double> tokens) {
  auto at = rows_.sites.find(id);
  if (at == rows_.sites.end() || foreign(tenant, at->second.tenant)) co_return no_such("site", "site_id");
  bucket::Bucket& budget = at->second.budget;
  budget = bucket::refilled(budget, now());
  budget.capacity = capacity;
  budget.refill_per_min = refill_per_min;
  budget.tokens = std::min(capacity, tokens.value_or(budget.tokens));
  co_return at->second;
}
Async<CameraRecord> FakeCatalog::add_camera(camera::Config config) {
  auto site = rows_.sites.find(config.site);
  if (site == rows_.sites.end() || site->second.tenant != config.tenant) co_return no_such("site", "site_id");
  if (auto row = rows_.leases.find(config.camera); row != rows_.leases.end() && row->second.kind != lease::Kind::camera)
    co_return exists_already("camera", "camera_uuid");
  CO_TRY(kept, keep(config));
  WallTime at = clock_();
  CameraRecord record{kept.config, at, at, at};
  if (!rows_.cameras.emplace(config.camera, record).second) co_return exists_already("camera", "camera_uuid");
  put_in_charge(config, charge_of(config));
  co_return record;
}
Async<std::vector<CameraRecord>> FakeCatalog::list_cameras(CameraFilter f) {
  std::vector<CameraRecord> out;
  for (auto at = rows_.cameras.upper_bound(f.after); at != rows_.cameras.end() && static_cast<int>(out.size()) < f.limit; ++at) {
    const camera::Config& c = at->second.config;
    if (!foreign(f.tenant, c.tenant) && (f.site.empty() || f.site == c.site) && (!f.enabled || *f.enabled == c.enabled))
      out.push_back(at->second);
  }
  co_return out;
}
Async<CameraRecord> FakeCatalog::show_camera(CameraId id, TenantId tenant) {
  auto at = rows_.cameras.find(id);
  if (at == rows_.cameras.end() || foreign(tenant, at->second.config.tenant)) co_return no_such("camera", "camera_uuid");
  co_return at->second;
}
Async<CameraRecord> FakeCatalog::edit_camera(CameraId id, TenantId tenant, CameraEdit change) {
  auto at = rows_.cameras.find(id);
  if (at == rows_.cameras.end() || foreign(tenant, at->second.config.tenant)) co_return no_such("camera", "camera_uuid");
  CO_TRY(config, change(at->second));
  CO_TRY(kept, keep(config));
  lease::Charge before = charge_of(at->second.config), charge = charge_of(config);
  at->second = edited(at->second, config, clock_());
  at->second.config = kept.config;
  if (charge != before) put_in_charge(config, charge);
  co_return at->second;
}
Async<int> FakeCatalog::count_crash(CameraId id, TenantId tenant) {
  auto at = rows_.cameras.find(id);
  if (at == rows_.cameras.end() || foreign(tenant, at->second.config.tenant)) co_return no_such("camera", "camera_uuid");
  co_return ++at->second.crashes;
}
Async<Nothing> FakeCatalog::remove_camera(CameraId id, TenantId tenant) {
  auto at = rows_.cameras.find(id);
  if (at == rows_.cameras.end() || foreign(tenant, at->second.config.tenant)) co_return no_such("camera", "camera_uuid");
  put_in_charge(at->second.config, {.assignable = false});
  rows_.cameras.erase(at);
  for (auto& [display_id, display] : rows_.displays)
    if (display.camera == id) display.camera = {};
  std::erase_if(rows_.subscriptions, [&](const auto& each) { return each.second.camera == id; });
  co_return ok();
}
Async<Runner> FakeCatalog::register_runner(Runner runner, std::string will, TenantId tenant) {
  auto before = rows_.runners.find(runner.id);
  if (before != rows_.runners.end()) {
    CO_TRY(free, may_register_again(before->second, runner, tenant));
  }
  if (!runner.boot.empty() && !rows_.boots.emplace(lease::Owner{runner.id, runner.boot}, FakeBoot{will}).second)
    co_return Error{Errc::conflict, "boot_known", "this boot_id was registered before"};
  runner.said_capacity = runner.capacity;
  if (before != rows_.runners.end()) keep_orders(before->second, runner);
  runner.registered_at = runner.last_heartbeat = clock_();
  rows_.heartbeats[runner.id] = now();
  rows_.runners[runner.id] = runner;
  co_return as_shown(runner);
}
Async<RunnerOrders> FakeCatalog::heartbeat(RunnerId id, TenantId tenant, boost::json::object body, int streams_owned) {
  auto at = rows_.runners.find(id);
  if (at == rows_.runners.end() || runner_foreign(tenant, at->second)) co_return no_such("runner", "runner_id");
  CO_TRY(own, commanded(at->second, tenant));
  at->second.heartbeat = body;
  at->second.streams_owned = streams_owned;
  at->second.last_heartbeat = clock_();
  rows_.heartbeats[id] = now();
  co_return RunnerOrders{at->second.cordoned, at->second.drain, at->second.capacity};
}
Async<std::vector<Runner>> FakeCatalog::list_runners(TenantId tenant, RunnerId after, int limit) {
  std::vector<Runner> out;
  for (auto at = rows_.runners.upper_bound(after); at != rows_.runners.end() && static_cast<int>(out.size()) < limit; ++at)
    if (!runner_foreign(tenant, at->second)) out.push_back(as_shown(at->second));
  co_return out;
}
Async<Runner> FakeCatalog::show_runner(RunnerId id, TenantId tenant) {
  auto at = rows_.runners.find(id);
  if (at == rows_.runners.end() || runner_foreign(tenant, at->second)) co_return no_such("runner", "runner_id");
  co_return as_shown(at->second);
}
Async<Runner> FakeCatalog::change_runner(RunnerId id, TenantId tenant, RunnerChange change) {
  auto at = rows_.runners.find(id);
  if (at == rows_.runners.end() || runner_foreign(tenant, at->second)) co_return no_such("runner", "runner_id");
  CO_TRY(own, commanded(at->second, tenant));
  at->second = changed(at->second, change);
  co_return as_shown(at->second);
}
Async<Nothing> FakeCatalog::remove_runner(RunnerId id, TenantId tenant) {
  auto at = rows_.runners.find(id);
  if (at == rows_.runners.end() || runner_foreign(tenant, at->second)) co_return no_such("runner", "runner_id");
  CO_TRY(own, commanded(at->second, tenant));
  if (held_by(id) > 0) co_return not_empty("runner", "leases");
  rows_.runners.erase(at);
  co_return ok();
}

// ---- streams ----

StreamRecord FakeCatalog::as_shown(StreamRecord stream) const {
  const lease::LeaseRow& row = rows_.leases.at(stream.id);
  stream.holder = !row.released && row.expires > now() ? row.owner.runner : RunnerId();
  return stream;
}

Async<StreamRecord> FakeCatalog::put_stream(StreamRecord stream) {
  auto lease = rows_.leases.find(stream.id);
  if (lease != rows_.leases.end() &&
      (lease->second.kind != lease::Kind::stream || lease->second.tenant != stream.tenant))
    co_return exists_already("stream", "stream_id");
  if (lease == rows_.leases.end()) {
    lease::LeaseRow row{stream.id, stream.tenant, stream.site};
    row.kind = lease::Kind::stream;
    lease = rows_.leases.emplace(stream.id, row).first;
  }
  StreamRecord& kept = rows_.streams.try_emplace(stream.id, StreamRecord{.id = stream.id, .created_at = clock_()}).first->second;
  kept.tenant = lease->second.tenant;
  kept.site = lease->second.site;
  kept.wishes = stream.wishes;
  kept.updated_at = clock_();
  co_return kept;
}

Async<Nothing> FakeCatalog::tell_stream(StreamTold told) {
  auto lease = rows_.leases.find(told.id);
  if (lease == rows_.leases.end() || lease->second.kind != lease::Kind::stream ||
      !lease::fence_accepts(lease->second, told.by, told.version, rows_.state.epoch))
    co_return stale_word();
  WallTime at = clock_();
  StreamRecord fresh{.id = told.id, .tenant = lease->second.tenant, .site = lease->second.site, .created_at = at, .updated_at = at};
  StreamRecord& kept = rows_.streams.try_emplace(told.id, fresh).first->second;
  kept.memory = told.memory;
  kept.view = told.view;
  kept.told_at = at;
  co_return ok();
}

Async<std::vector<StreamRecord>> FakeCatalog::list_streams(TenantId tenant, SubjectId after, int limit) {
  std::vector<StreamRecord> out;
  for (auto at = rows_.streams.upper_bound(after); at != rows_.streams.end() && static_cast<int>(out.size()) < limit; ++at)
    if (!foreign(tenant, at->second.tenant)) out.push_back(as_shown(at->second));
  co_return out;
}

Async<StreamRecord> FakeCatalog::show_stream(SubjectId id, TenantId tenant) {
  auto at = rows_.streams.find(id);
  if (at == rows_.streams.end() || foreign(tenant, at->second.tenant)) co_return no_such("stream", "stream_id");
  co_return as_shown(at->second);
}

Async<Nothing> FakeCatalog::remove_stream(SubjectId id, TenantId tenant) {
  auto at = rows_.streams.find(id);
  if (at == rows_.streams.end() || foreign(tenant, at->second.tenant)) co_return no_such("stream", "stream_id");
  if (!as_shown(at->second).holder.empty()) co_return not_empty("stream", "a holder");
  rows_.streams.erase(at);
  co_return ok();
}

}  // namespace weir::test
