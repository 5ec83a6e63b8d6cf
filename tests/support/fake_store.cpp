#include "fake_store.hpp"

#include "weir/base/secret.hpp"

#include <algorithm>

namespace weir::test {

using lease::LeaseRow;

namespace {
template <class T>
bool foreign(const TenantId& asker, const T& owner) {
  return !asker.empty() && owner != asker;
}
bool runner_foreign(const TenantId& asker, const Runner& runner) {
  return !asker.empty() && !runner.tenant.empty() && runner.tenant != asker;
}
}  // namespace

class FakeStore::Access final : public lease::Rows {
 public:
  explicit Access(FakeStore& store) : s_(store), r_(store.rows_) {}
  std::optional<LeaseRow> find(const CameraId& camera) override {
    auto at = r_.leases.find(camera);
    if (at == r_.leases.end()) return std::nullopt;
    return at->second;
  }
  void save(const LeaseRow& row) override { r_.leases[row.camera] = row; }
  bool boot_dead(const lease::Owner& owner) override {
    auto at = r_.boots.find(owner);
    return at != r_.boots.end() && at->second.dead;
  }
  bool cordoned(const RunnerId& runner) override {
    auto at = r_.runners.find(runner);
    return at != r_.runners.end() && (at->second.cordoned || at->second.drain != DrainMode::none);
  }
  bool avoided(const CameraId& camera, const RunnerId& runner, LeaseTime now) override {
    auto at = r_.avoids.find({camera, runner});
    return at != r_.avoids.end() && at->second.first > now;
  }
  bool other_eligible(const CameraId& camera, const RunnerId& runner, LeaseTime now) override {
    const LeaseRow& row = r_.leases.at(camera);
    bool ran_out = !row.released && row.expires <= now;
    return std::ranges::any_of(r_.runners, [&](const auto& entry) {
      const Runner& other = entry.second;
      return other.id != runner && !cordoned(other.id) && r_.heartbeats[other.id] > now - s_.limits_.runner_live &&
             (other.tenant.empty() || other.tenant == row.tenant) && (other.site.empty() || other.site == row.site) &&
             s_.held_by(other.id) < other.capacity && !(ran_out && row.owner.runner == other.id) &&
             !avoided(camera, other.id, now);
    });
  }
  void add_avoid(const CameraId& camera, const RunnerId& runner, LeaseTime now) override {
    auto& [until, strikes] = r_.avoids[{camera, runner}];
    until = now + lease::avoid_duration(++strikes);
  }
  void empty_buckets(LeaseTime now) override {
    for (auto& [id, site] : r_.sites) {
      site.budget.tokens = 0;
      site.budget.updated = now;
    }
  }

 private:
  FakeStore& s_;
  FakeRows& r_;
};

FakeStore::FakeStore(std::function<WallTime()> clock, LeaseLimits limits) : clock_(std::move(clock)), limits_(limits) {
  rows_.state.mark = clock_();
}

LeaseTime FakeStore::now() const { return lease::lease_time(rows_.state, clock_()); }

int FakeStore::held_by(const RunnerId& runner) const {
  return static_cast<int>(std::ranges::count_if(
      rows_.leases, [&](const auto& entry) { return entry.second.owner.runner == runner && !entry.second.released; }));
}

bool FakeStore::tick_now() {
  Duration longest{0};
  for (const auto& [camera, row] : rows_.leases)
    if (!row.released) longest = std::max(longest, row.ttl);
  bool hold = lease::tick(rows_.state, clock_(), longest);
  hold_opened_ |= hold;
  return hold;
}

lease::Applied FakeStore::apply_now(const lease::Batch& batch) {
  Access access(*this);
  auto applied = lease::apply(access, rows_.state, batch, clock_(), limits_.ttl_max);
  epoch_opened_ |= applied.epoch_opened;
  return applied;
}

void FakeStore::open_epoch_now() {
  Access access(*this);
  lease::open_epoch(rows_.state, now(), limits_.ttl_max);
  access.empty_buckets(now());
}

Result<std::vector<LeaseRow>> FakeStore::release_all_now(const lease::Owner& owner, const std::string& will_sha256) {
  auto boot = rows_.boots.find(owner);
  if (boot == rows_.boots.end() || boot->second.will_sha256.empty() || boot->second.will_sha256 != will_sha256)
    return Error{Errc::unauthorized, "will_refused", "this boot's last will was not signed with its secret"};
  FakeBoot& known = boot->second;
  if (!known.dead) known.will_after = lease::Version::make(rows_.state.epoch, rows_.state.counter);
  known.dead = true;
  if (auto runner = rows_.runners.find(owner.runner); runner != rows_.runners.end() && runner->second.boot == owner.boot)
    rows_.heartbeats[owner.runner] = LeaseTime(-24h);
  std::vector<LeaseRow> released;
  for (auto& [camera, row] : rows_.leases) {
    if (row.owner != owner) continue;
    if (!row.released) {
      row.version = draw();
      row.released = true;
      row.last_key.clear();
    }
    if (!row.revoked && row.version > known.will_after) released.push_back(row);
  }
  return released;
}

std::vector<LeaseRow> FakeStore::take_expired_now(int most) {
  std::vector<LeaseRow> taken;
  lease::Moment moment = lease::moment_of(rows_.state, clock_());
  if (!lease::settled(moment)) return taken;
  for (const auto& [camera, row] : rows_.leases) {
    if (static_cast<int>(taken.size()) == most) break;
    if (row.released || row.expires > moment.now || rows_.expiries_told[camera] == row.expires) continue;
    rows_.expiries_told[camera] = row.expires;
    taken.push_back(row);
  }
  return taken;
}

Result<BudgetAnswer> FakeStore::consume_now(const SiteId& site, const TenantId& tenant,
                                            const std::optional<BudgetUse>& use) {
  auto at = rows_.sites.find(site);
  if (at == rows_.sites.end() || foreign(tenant, at->second.tenant)) return no_such("site", "site_id");
  bucket::Bucket present = bucket::refilled(at->second.budget, now());
  if (use) {
    auto row = rows_.leases.find(use->camera);
    if (row == rows_.leases.end() || row->second.site != site) return no_such("camera", "camera_uuid");
    auto used = rows_.budget_uses.find(use->camera);
    if (used != rows_.budget_uses.end() && used->second == use->grant)
      return BudgetAnswer{true, present.tokens, present.capacity};
  }
  bucket::Consumed consumed = bucket::consume(present, now());
  at->second.budget = consumed.next;
  if (use && consumed.granted) rows_.budget_uses[use->camera] = use->grant;
  return BudgetAnswer{consumed.granted, consumed.next.tokens, consumed.next.capacity, consumed.retry_after};
}

Result<Nothing> FakeStore::revoke_now(const CameraId& camera) {
  auto row = rows_.leases.find(camera);
  if (row == rows_.leases.end()) return no_such("camera", "camera_uuid");
  if (row->second.released) return ok();
  rows_.avoids[{camera, row->second.owner.runner}] = {now() + lease::kRevokedAvoid, 0};
  row->second = lease::revoke(row->second, draw());
  return ok();
}

void FakeStore::heartbeat_now(const RunnerId& id, int capacity) {
  Runner& runner = rows_.runners[id];
  runner.id = id;
  runner.capacity = capacity;
  rows_.heartbeats[id] = now();
}

void FakeStore::add_camera_now(const CameraId& camera, const SiteId& site) {
  LeaseRow row{camera};
  row.site = site;
  rows_.leases[camera] = row;
}

void FakeStore::set_assignable(const camera::Config& config, bool assignable) {
  LeaseRow& row = rows_.leases.try_emplace(config.camera, LeaseRow{config.camera}).first->second;
  if (!assignable && !row.released) row = lease::revoke(row, draw());
  row.tenant = config.tenant;
  row.site = config.site;
  row.assignable = assignable;
}

LeaseView FakeStore::view(const LeaseRow& row) const {
  return {row, clock_() + (row.expires - now()), !row.released && row.expires <= now()};
}

Runner FakeStore::read(const Runner& runner) const {
  Runner out = runner;
  out.leases_held = held_by(runner.id);
  out.live = now() - rows_.heartbeats.at(runner.id) < limits_.runner_live;
  return out;
}

template <class T>
using Async = boost::asio::awaitable<Result<T>>;

Async<std::vector<lease::Answer>> FakeStore::apply(lease::Batch batch) {
  tick_now();
  co_return apply_now(batch).answers;
}
Async<TickReport> FakeStore::tick() {
  tick_now();
  TickReport report{hold_opened_, epoch_opened_, rows_.state.epoch};
  hold_opened_ = epoch_opened_ = false;
  co_return report;
}
Async<LeaseView> FakeStore::revoke(CameraId camera, TenantId tenant) {
  auto row = rows_.leases.find(camera);
  if (row == rows_.leases.end() || foreign(tenant, row->second.tenant)) co_return no_such("camera", "camera_uuid");
  CO_TRY(done, revoke_now(camera));
  co_return view(row->second);
}
Async<std::vector<LeaseRow>> FakeStore::release_all(lease::Owner owner, std::string will) {
  co_return release_all_now(owner, will);
}
Async<std::vector<LeaseRow>> FakeStore::take_expired(int most) { co_return take_expired_now(most); }
Async<std::vector<LeaseView>> FakeStore::list(LeaseFilter f) {
  std::vector<LeaseView> out;
  for (auto at = rows_.leases.upper_bound(f.after); at != rows_.leases.end(); ++at) {
    const LeaseRow& row = at->second;
    if (static_cast<int>(out.size()) == f.limit) break;
    if (foreign(f.tenant, row.tenant) || (!f.runner.empty() && row.owner.runner != f.runner) ||
        (!f.boot.empty() && row.owner.boot != f.boot) ||
        (f.only_held && row.released) || row.owner.runner.empty())
      continue;
    out.push_back(view(row));
  }
  co_return out;
}
Async<LeaseView> FakeStore::show(CameraId camera, TenantId tenant) {
  auto row = rows_.leases.find(camera);
  if (row == rows_.leases.end() || foreign(tenant, row->second.tenant)) co_return no_such("camera", "camera_uuid");
  co_return view(row->second);
}
Async<BudgetAnswer> FakeStore::consume(SiteId site, TenantId tenant, std::optional<BudgetUse> use) {
  tick_now();
  co_return consume_now(site, tenant, use);
}

Async<Nothing> FakeStore::ping() { co_return ok(); }
Async<Tenant> FakeStore::add_tenant(Tenant tenant) {
  tenant.created_at = clock_();
  if (!rows_.tenants.emplace(tenant.id, tenant).second) co_return exists_already("tenant", "tenant_id");
  co_return tenant;
}
Async<std::vector<Tenant>> FakeStore::list_tenants(TenantId only, TenantId after, int limit) {
  std::vector<Tenant> out;
  for (auto at = rows_.tenants.upper_bound(after); at != rows_.tenants.end() && static_cast<int>(out.size()) < limit; ++at)
    if (!foreign(only, at->first)) out.push_back(at->second);
  co_return out;
}
Async<Nothing> FakeStore::remove_tenant(TenantId id) {
  for (const auto& [site_id, site] : rows_.sites)
    if (site.tenant == id) co_return not_empty("tenant", "sites");
  if (rows_.tenants.erase(id) == 0) co_return no_such("tenant", "tenant_id");
  std::erase_if(rows_.keys, [&](const auto& each) { return each.second.tenant == id; });
  co_return ok();
}
Async<Site> FakeStore::add_site(Site site) {
  if (!rows_.tenants.contains(site.tenant)) co_return no_such("tenant", "tenant_id");
  site.created_at = clock_();
  site.budget.updated = now();
  if (!rows_.sites.emplace(site.id, site).second) co_return exists_already("site", "site_id");
  co_return site;
}
Async<std::vector<Site>> FakeStore::list_sites(TenantId tenant, SiteId after, int limit) {
  std::vector<Site> out;
  for (auto at = rows_.sites.upper_bound(after); at != rows_.sites.end() && static_cast<int>(out.size()) < limit; ++at)
    if (!foreign(tenant, at->second.tenant)) out.push_back(at->second);
  co_return out;
}
Async<Site> FakeStore::show_site(SiteId id, TenantId tenant) {
  auto at = rows_.sites.find(id);
  if (at == rows_.sites.end() || foreign(tenant, at->second.tenant)) co_return no_such("site", "site_id");
  Site site = at->second;
  site.budget = bucket::refilled(site.budget, now());
  co_return site;
}
Async<int> FakeStore::count_cameras(SiteId id, TenantId tenant) {
  co_return static_cast<int>(std::ranges::count_if(rows_.cameras, [&](const auto& each) {
    const camera::Config& config = each.second.config;
    return config.site == id && config.enabled && !foreign(tenant, config.tenant);
  }));
}
Async<Nothing> FakeStore::remove_site(SiteId id, TenantId tenant) {
  auto at = rows_.sites.find(id);
  if (at == rows_.sites.end() || foreign(tenant, at->second.tenant)) co_return no_such("site", "site_id");
  for (const auto& [camera, record] : rows_.cameras)
    if (record.config.site == id) co_return not_empty("site", "cameras");
  rows_.sites.erase(at);
  co_return ok();
}
Async<Site> FakeStore::set_budget(SiteId id, TenantId tenant, double capacity, double refill_per_min,
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
Async<CameraRecord> FakeStore::add_camera(camera::Config config) {
  auto site = rows_.sites.find(config.site);
  if (site == rows_.sites.end() || site->second.tenant != config.tenant) co_return no_such("site", "site_id");
  CO_TRY(kept, keep(config));
  WallTime at = clock_();
  CameraRecord record{kept.config, at, at, at};
  if (!rows_.cameras.emplace(config.camera, record).second) co_return exists_already("camera", "camera_uuid");
  set_assignable(config, config.assignable());
  co_return record;
}
Async<std::vector<CameraRecord>> FakeStore::list_cameras(CameraFilter f) {
  std::vector<CameraRecord> out;
  for (auto at = rows_.cameras.upper_bound(f.after); at != rows_.cameras.end() && static_cast<int>(out.size()) < f.limit; ++at) {
    const camera::Config& c = at->second.config;
    if (!foreign(f.tenant, c.tenant) && (f.site.empty() || f.site == c.site) && (!f.enabled || *f.enabled == c.enabled))
      out.push_back(at->second);
  }
  co_return out;
}
Async<CameraRecord> FakeStore::show_camera(CameraId id, TenantId tenant) {
  auto at = rows_.cameras.find(id);
  if (at == rows_.cameras.end() || foreign(tenant, at->second.config.tenant)) co_return no_such("camera", "camera_uuid");
  co_return at->second;
}
Async<CameraRecord> FakeStore::edit_camera(CameraId id, TenantId tenant, CameraEdit change) {
  auto at = rows_.cameras.find(id);
  if (at == rows_.cameras.end() || foreign(tenant, at->second.config.tenant)) co_return no_such("camera", "camera_uuid");
  CO_TRY(config, change(at->second));
  CO_TRY(kept, keep(config));
  bool was = at->second.config.assignable();
  at->second = edited(at->second, config, clock_());
  at->second.config = kept.config;
  if (was != config.assignable()) set_assignable(config, config.assignable());
  co_return at->second;
}
Async<int> FakeStore::count_crash(CameraId id, TenantId tenant) {
  auto at = rows_.cameras.find(id);
  if (at == rows_.cameras.end() || foreign(tenant, at->second.config.tenant)) co_return no_such("camera", "camera_uuid");
  co_return ++at->second.crashes;
}
Async<Nothing> FakeStore::remove_camera(CameraId id, TenantId tenant) {
  auto at = rows_.cameras.find(id);
  if (at == rows_.cameras.end() || foreign(tenant, at->second.config.tenant)) co_return no_such("camera", "camera_uuid");
  set_assignable(at->second.config, false);
  rows_.cameras.erase(at);
  co_return ok();
}
Async<Runner> FakeStore::register_runner(Runner runner, std::string will, TenantId tenant) {
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
  co_return read(runner);
}
Async<RunnerOrders> FakeStore::heartbeat(RunnerId id, TenantId tenant, boost::json::object body, int streams_owned) {
  auto at = rows_.runners.find(id);
  if (at == rows_.runners.end() || runner_foreign(tenant, at->second)) co_return no_such("runner", "runner_id");
  CO_TRY(own, commanded(at->second, tenant));
  at->second.heartbeat = body;
  at->second.streams_owned = streams_owned;
  at->second.last_heartbeat = clock_();
  rows_.heartbeats[id] = now();
  co_return RunnerOrders{at->second.cordoned, at->second.drain, at->second.capacity};
}
Async<std::vector<Runner>> FakeStore::list_runners(TenantId tenant, RunnerId after, int limit) {
  std::vector<Runner> out;
  for (auto at = rows_.runners.upper_bound(after); at != rows_.runners.end() && static_cast<int>(out.size()) < limit; ++at)
    if (!runner_foreign(tenant, at->second)) out.push_back(read(at->second));
  co_return out;
}
Async<Runner> FakeStore::show_runner(RunnerId id, TenantId tenant) {
  auto at = rows_.runners.find(id);
  if (at == rows_.runners.end() || runner_foreign(tenant, at->second)) co_return no_such("runner", "runner_id");
  co_return read(at->second);
}
Async<Runner> FakeStore::change_runner(RunnerId id, TenantId tenant, RunnerChange change) {
  auto at = rows_.runners.find(id);
  if (at == rows_.runners.end() || runner_foreign(tenant, at->second)) co_return no_such("runner", "runner_id");
  CO_TRY(own, commanded(at->second, tenant));
  at->second = changed(at->second, change);
  co_return read(at->second);
}
Async<Nothing> FakeStore::remove_runner(RunnerId id, TenantId tenant) {
  auto at = rows_.runners.find(id);
  if (at == rows_.runners.end() || runner_foreign(tenant, at->second)) co_return no_such("runner", "runner_id");
  CO_TRY(own, commanded(at->second, tenant));
  if (held_by(id) > 0) co_return not_empty("runner", "leases");
  rows_.runners.erase(at);
  co_return ok();
}


// ---- events ----

Confirmation FakeStore::append_now(const OutgoingEvent& event, const EventSpeaker& speaker) {
  if (rows_.event_ids.contains(event.event_id)) return Confirmation::duplicate;
  TenantId tenant = speaker.tenant;
  if (event.stamp) {
    auto row = rows_.leases.find(event.stamp->camera);
    if (row == rows_.leases.end() || (!speaker.tenant.empty() && row->second.tenant != speaker.tenant) ||
        !lease::fence_accepts(row->second, speaking_owner(speaker, row->second), event.stamp->version,
                              rows_.state.epoch))
      return Confirmation::stale;
    tenant = row->second.tenant;
  }
  std::int64_t sequence = ++rows_.last_event;
  rows_.events[sequence] = {sequence, tenant, event.topic, event.routing_key, event.payload, clock_()};
  rows_.event_ids[event.event_id] = sequence;
  return Confirmation::accepted;
}

Async<std::vector<Confirmation>> FakeStore::append(std::vector<OutgoingEvent> events, EventSpeaker speaker) {
  std::vector<Confirmation> answers;
  for (const OutgoingEvent& event : events) answers.push_back(append_now(event, speaker));
  co_return answers;
}

Async<Nothing> FakeStore::announce(std::vector<Announcement> announcements) {
  for (const Announcement& each : announcements) {
    if (each.stamp && rows_.leases[each.stamp->camera].version != each.stamp->version) continue;
    OutgoingEvent event{std::string(each.topic), each.routing_key, each.event_id, each.payload};
    append_now(event, {{}, {}, each.tenant});
  }
  co_return ok();
}

Async<EventPage> FakeStore::read(std::int64_t after, int limit) {
  EventPage page{{}, std::max(after, rows_.last_event), rows_.forgotten_to, rows_.state.epoch};
  size_t bytes = 0;
  for (auto at = rows_.events.upper_bound(after); at != rows_.events.end(); ++at) {
    page.events.push_back(at->second);
    bytes += at->second.payload.size();
    page.more = static_cast<int>(page.events.size()) == limit || bytes >= kEventPageBytes;
    if (!page.more) continue;
    page.scanned_to = at->first;
    break;
  }
  co_return page;
}

Async<EventPlace> FakeStore::newest() { co_return EventPlace{rows_.state.epoch, rows_.last_event}; }

Async<std::int64_t> FakeStore::trim(EventRetention retention, int most) {
  std::int64_t forgotten = 0;
  while (!rows_.events.empty() && forgotten < most) {
    const StoredEvent& oldest = rows_.events.begin()->second;
    Duration age = clock_() - oldest.stored_at;
    bool too_many = oldest.sequence <= rows_.last_event - retention.events_max &&
                    (age > kEventsRemembered || age < -kEventsFromTheFuture);
    if (age <= retention.age && !too_many) break;
    rows_.forgotten_to = oldest.sequence;
    std::erase_if(rows_.event_ids, [&](const auto& each) { return each.second == rows_.forgotten_to; });
    rows_.events.erase(rows_.events.begin());
    ++forgotten;
  }
  co_return forgotten;
}

// ---- keys ----

Async<ApiKey> FakeStore::add_key(ApiKey key, std::string secret_sha256) {
  if (!key.tenant.empty() && !rows_.tenants.contains(key.tenant)) co_return no_such("tenant", "tenant_id");
  if (rows_.keys.contains(key.id) || !rows_.key_hashes.try_emplace(secret_sha256, key.id).second)
    co_return exists_already("key", "key_id");
  key.created_at = clock_();
  key.last_used_at = {};
  rows_.keys[key.id] = key;
  co_return key;
}
Async<std::vector<ApiKey>> FakeStore::list_keys(TenantId tenant, KeyId after, int limit) {
  std::vector<ApiKey> out;
  for (auto at = rows_.keys.upper_bound(after); at != rows_.keys.end() && static_cast<int>(out.size()) < limit; ++at)
    if (!foreign(tenant, at->second.tenant)) out.push_back(at->second);
  co_return out;
}
Async<Nothing> FakeStore::revoke_key(KeyId id, TenantId tenant) {
  auto at = rows_.keys.find(id);
  if (at == rows_.keys.end() || foreign(tenant, at->second.tenant)) co_return no_such("key", "key_id");
  rows_.keys.erase(at);
  co_return ok();
}
Async<ApiKey> FakeStore::find_key(std::string secret_sha256) {
  auto hash = rows_.key_hashes.find(secret_sha256);
  auto at = hash == rows_.key_hashes.end() ? rows_.keys.end() : rows_.keys.find(hash->second);
  if (at == rows_.keys.end()) co_return no_such("key", "key_id");
  if (worth_noting(at->second, clock_())) at->second.last_used_at = clock_();
  co_return at->second;
}

}  // namespace weir::test
