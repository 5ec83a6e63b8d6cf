#include "weir/sqlite/store.hpp"

#include "displays.hpp"
#include "files.hpp"
#include "keys.hpp"
#include "models.hpp"
#include "streams.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/log.hpp"
#include "weir/base/log_limit.hpp"
#include "weir/sqlite/core.hpp"

#include <algorithm>
#include <atomic>
#include <span>
#include <thread>

namespace weir::sqlite {

namespace {
constexpr size_t kQueueMax = 20'000;
constexpr size_t kGroupMax = 512;
constexpr Duration kSlice = 100ms;  // of other work, before leases have their turn again

Error store_failed(const std::exception& failure) {
  return {Errc::unavailable, "store_unavailable", fmt::format("the store failed: {}", failure.what())};
}
}  // namespace

struct SqliteStore::State {
  // Constant after construction.
  LeaseLimits limits;
  FolderLock lock;
  bool shared_connection = false;   // ":memory:": reads go through the writer
  // Writer thread only.
  std::unique_ptr<Core> core;
  LogLimit commit_failures{5s}, tick_failures{5s}, recoveries{5s};
  bool failing = false;             // what was to be written last could not be
  bool hold = false;                // opened, and not told yet
  Instant written{};                // something was, last
  // Writer thread writes, others copy.
  std::mutex mutex;
  lease::StoreState published;
  TickReport report;
  std::atomic<Instant::rep> last_turn{0};  // that was kept

  JobQueue writes{kQueueMax};
  JobQueue reads{kQueueMax};
  std::thread writer;
  std::thread reader;

  void write_loop();
  void read_loop();
  std::optional<size_t> attempt(std::span<Job> jobs);
  void run_group(std::vector<Job>& jobs);
  void publish();

  std::pair<LeaseTime, WallTime> times() {
    WallTime clock = wall_now();
    std::lock_guard guard(mutex);
    return {lease::lease_time(published, clock), clock};
  }
  std::int64_t epoch() {
    std::lock_guard guard(mutex);
    return published.epoch;
  }
  template <class T>
  Async<T> write(std::function<Result<T>(Core&)> work, Turn turn = Turn::usual) {
    return run_blocking<T>(writes, [this, work = std::move(work)] { return work(*core); }, turn);
  }
  template <class T>
  Async<T> read(std::function<Result<T>(Core::Reader&)> work) {
    return run_blocking<T>(shared_connection ? writes : reads,
                           [this, work = std::move(work)] { return work(core->reader()); });
  }
  // Calls a method of the core, or of its reader, with these arguments.
  template <class R, class... Parameters, class... Arguments>
  Async<ValueOf<R>> writing(R (Core::*method)(Parameters...), Arguments... arguments) {
    return write<ValueOf<R>>([=](Core& c) -> Result<ValueOf<R>> { return (c.*method)(arguments...); });
  }
  template <class R, class... Parameters, class... Arguments>
  Async<ValueOf<R>> reading(R (Core::Reader::*method)(Parameters...), Arguments... arguments) {
    return read<ValueOf<R>>([=](Core::Reader& r) -> Result<ValueOf<R>> { return (r.*method)(arguments...); });
  }
  // Runs a statement with these arguments, on the writer's connection or on the reader's.
  template <class R, class... Parameters, class... Arguments>
  Async<ValueOf<R>> writing(R (*statement)(Db&, Parameters...), Arguments... arguments) {
    return write<ValueOf<R>>([=](Core& c) -> Result<ValueOf<R>> { return statement(c.db(), arguments...); });
  }
  template <class R, class... Parameters, class... Arguments>
  Async<ValueOf<R>> reading(R (*statement)(Db&, Parameters...), Arguments... arguments) {
    return read<ValueOf<R>>([=](Core::Reader& r) -> Result<ValueOf<R>> { return statement(r.db(), arguments...); });
  }
};

void SqliteStore::State::publish() {
  std::lock_guard guard(mutex);
  if (core->state().epoch > published.epoch && published.epoch > 0) report.epoch_opened = true;
  if (!failing) report.hold_opened |= std::exchange(hold, false);
  report.epoch = core->state().epoch;
  published = core->state();
  if (!failing) last_turn = boot_now().time_since_epoch().count();
}

// All that are begun, or none: how many those are. Leases are, however long it takes, and one of the others.
std::optional<size_t> SqliteStore::State::attempt(std::span<Job> jobs) {
  size_t begun = 0;
  try {
    core->begin();
    if (failing) hold |= core->tick();  // so that something is written, which shows whether that can be done again
    std::optional<Instant> enough;
    for (Job& job : jobs) {
      if (enough && boot_now() >= *enough) break;
      if (job.turn == Turn::usual && !enough) enough = boot_now() + kSlice;
      ++begun;
      core->mark_job();
      try {
        job.work();
        core->keep_job();
      } catch (const std::exception& failure) {
        core->undo_job();
        job.fail(store_failed(failure));
      }
    }
    if (core->commit()) {
      failing = false;
      written = boot_now();
    }
    return begun;
  } catch (const std::exception& failure) {
    failing = true;
    hold = false;
    if (auto left_out = commit_failures.due(boot_now()))
      log::error("store.commit_failed", failure.what()).with("jobs", jobs.size()).with("left_out", *left_out);
    try {
      core->rollback();
    } catch (const std::exception&) {
      // Where the rollback fails, the next BEGIN fails too, and is logged.
    }
    for (Job& job : jobs) job.fail(store_failed(failure));
    return {};
  }
}

// All that waited while the last commit was flushed shares the next one; what takes longer waits for another, so that a
// lease waits for a slice or two of it and not for all. On a disk that is full leases, which stand first and are small,
// may still fit where events do not; it is not tried where that took long to see.
void SqliteStore::State::run_group(std::vector<Job>& jobs) {
  Instant begin = boot_now();
  bool failed_before = failing;
  auto leases = std::ranges::count_if(jobs, [](const Job& job) { return job.turn == Turn::lease; });
  bool mixed = leases > 0 && std::cmp_less(leases, jobs.size());
  auto begun = attempt(jobs);
  if (!begun && mixed && boot_now() - begin < 500ms) attempt(std::span(jobs).first(static_cast<size_t>(leases)));
  if (begun && failed_before && !failing && recoveries.due(boot_now()))
    log::info("store.writes_again", "the store can be written to");
  auto later = jobs.begin() + static_cast<std::ptrdiff_t>(begun.value_or(jobs.size()));
  writes.put_back({std::move_iterator(later), std::move_iterator(jobs.end())});
  jobs.erase(later, jobs.end());
  for (Job& job : jobs) job.done();
}

void SqliteStore::State::write_loop() {
  while (!writes.closed() || writes.waiting() > 0) {
    std::vector<Job> jobs = writes.take(kGroupMax, lease::kTickEvery);
    try {
      hold |= core->tick();
    } catch (const std::exception& failure) {
      if (auto left_out = tick_failures.due(boot_now()))
        log::error("store.tick_failed", failure.what()).with("left_out", *left_out);
    }
    if (!jobs.empty() || failing) run_group(jobs);
    publish();
  }
}

void SqliteStore::State::read_loop() {
  while (!reads.closed()) {
    for (Job& job : reads.take(1, 10s)) {
      try {
        job.work();
      } catch (const std::exception& failure) {
        job.fail(store_failed(failure));
      }
      job.done();
    }
  }
}

class SqliteStore::CatalogPort final : public Catalog {
 public:
  explicit CatalogPort(State& state) : state_(state) {}

  // Answers where something could be written a moment ago, or can be now: a disk that is full can still be read.
  Async<Nothing> ping() override {
    return state_.write<Nothing>([this](Core& c) {
      if (boot_now() - state_.written > 1s) state_.hold |= c.tick();
      return ok();
    });
  }
  Async<Tenant> add_tenant(Tenant tenant) override { return state_.writing(&Core::add_tenant, tenant); }
  Async<std::vector<Tenant>> list_tenants(TenantId only, TenantId after, int limit) override {
    return state_.reading(&Core::Reader::list_tenants, only, after, limit);
  }
  Async<Nothing> remove_tenant(TenantId id) override { return state_.writing(&Core::remove_tenant, id); }
  Async<Site> add_site(Site site) override { return state_.writing(&Core::add_site, site); }
  Async<std::vector<Site>> list_sites(TenantId tenant, SiteId after, int limit) override {
    return state_.read<std::vector<Site>>([=, this](Core::Reader& r) -> Result<std::vector<Site>> {
      return r.list_sites(tenant, after, limit, state_.times().first);
    });
  }
  Async<Site> show_site(SiteId id, TenantId tenant) override {
    return state_.read<Site>([=, this](Core::Reader& r) { return r.show_site(id, tenant, state_.times().first); });
  }
  Async<int> count_cameras(SiteId id, TenantId tenant) override {
    return state_.reading(&Core::Reader::count_cameras, id, tenant);
  }
  Async<Nothing> remove_site(SiteId id, TenantId tenant) override {
    return state_.writing(&Core::remove_site, id, tenant);
  }
  Async<Site> set_budget(SiteId id, TenantId tenant, double capacity, double refill_per_min,
                         std::optional<double> tokens) override {
    return state_.writing(&Core::set_budget, id, tenant, capacity, refill_per_min, tokens);
  }
  Async<CameraRecord> add_camera(camera::Config config) override { return state_.writing(&Core::add_camera, config); }
  Async<std::vector<CameraRecord>> list_cameras(CameraFilter filter) override {
    return state_.reading(&Core::Reader::list_cameras, filter);
  }
  Async<CameraRecord> show_camera(CameraId id, TenantId tenant) override {
    return state_.reading(&Core::Reader::show_camera, id, tenant);
  }
  Async<CameraRecord> edit_camera(CameraId id, TenantId tenant, CameraEdit change) override {
    return state_.writing(&Core::edit_camera, id, tenant, change);
  }
  Async<Nothing> remove_camera(CameraId id, TenantId tenant) override {
    return state_.writing(&Core::remove_camera, id, tenant);
  }
  Async<int> count_crash(CameraId id, TenantId tenant) override {
    return state_.writing(&Core::count_crash, id, tenant);
  }
  Async<Runner> register_runner(Runner runner, std::string will_sha256, TenantId tenant) override {
    return state_.writing(&Core::register_runner, runner, will_sha256, tenant);
  }
  Async<RunnerOrders> heartbeat(RunnerId id, TenantId tenant, boost::json::object body, int streams_owned) override {
    return state_.writing(&Core::heartbeat, id, tenant, body, streams_owned);
  }
  Async<std::vector<Runner>> list_runners(TenantId tenant, RunnerId after, int limit) override {
    return state_.read<std::vector<Runner>>([=, this](Core::Reader& r) -> Result<std::vector<Runner>> {
      return r.list_runners(tenant, after, limit, state_.times().first, state_.limits.runner_live);
    });
  }
  Async<Runner> show_runner(RunnerId id, TenantId tenant) override {
    return state_.read<Runner>([=, this](Core::Reader& r) {
      return r.show_runner(id, tenant, state_.times().first, state_.limits.runner_live);
    });
  }
  Async<Runner> change_runner(RunnerId id, TenantId tenant, RunnerChange change) override {
    return state_.writing(&Core::change_runner, id, tenant, change);
  }
  Async<Nothing> remove_runner(RunnerId id, TenantId tenant) override {
    return state_.writing(&Core::remove_runner, id, tenant);
  }
  Async<StreamRecord> put_stream(StreamRecord stream) override {
    return state_.write<StreamRecord>([=](Core& c) { return sqlite::put_stream(c.db(), wall_now(), stream); });
  }
  Async<Nothing> tell_stream(StreamTold told) override {
    return state_.write<Nothing>(
        [=](Core& c) { return sqlite::tell_stream(c.db(), wall_now(), c.state().epoch, told); });
  }
  Async<std::vector<StreamRecord>> list_streams(TenantId tenant, SubjectId after, int limit) override {
    return state_.read<std::vector<StreamRecord>>([=, this](Core::Reader& r) -> Result<std::vector<StreamRecord>> {
      return r.list_streams(tenant, after, limit, state_.times().first);
    });
  }
  Async<StreamRecord> show_stream(SubjectId id, TenantId tenant) override {
    return state_.read<StreamRecord>(
        [=, this](Core::Reader& r) { return r.show_stream(id, tenant, state_.times().first); });
  }
  Async<Nothing> remove_stream(SubjectId id, TenantId tenant) override {
    return state_.write<Nothing>([=](Core& c) { return sqlite::remove_stream(c.db(), c.now(), id, tenant); });
  }
  Async<ModelRecord> put_model(ModelRecord model, Put how) override {
    return state_.writing(sqlite::put_model, wall_now(), model, how);
  }
  Async<std::vector<ModelRecord>> list_models(TenantId tenant, ModelId after, int limit) override {
    return state_.reading(sqlite::list_models, tenant, after, limit);
  }
  Async<ModelRecord> show_model(ModelId id, TenantId tenant) override {
    return state_.reading(sqlite::show_model, id, tenant);
  }
  Async<ModelRecord> set_model_file(ModelId id, TenantId tenant, ModelFile file) override {
    return state_.writing(sqlite::set_model_file, wall_now(), id, tenant, file);
  }
  Async<Nothing> remove_model(ModelId id, TenantId tenant) override {
    return state_.writing(sqlite::remove_model, id, tenant);
  }
  Async<PlaylistRecord> put_playlist(PlaylistRecord playlist, Put how) override {
    return state_.writing(sqlite::put_playlist, wall_now(), playlist, how);
  }
  Async<std::vector<PlaylistRecord>> list_playlists(TenantId tenant, PlaylistId after, int limit) override {
    return state_.reading(sqlite::list_playlists, tenant, after, limit);
  }
  Async<PlaylistRecord> show_playlist(PlaylistId id, TenantId tenant) override {
    return state_.reading(sqlite::show_playlist, id, tenant);
  }
  Async<Nothing> remove_playlist(PlaylistId id, TenantId tenant) override {
    return state_.writing(sqlite::remove_playlist, id, tenant);
  }
  Async<DisplayRecord> put_display(DisplayRecord display, Put how) override {
    return state_.writing(sqlite::put_display, wall_now(), display, how);
  }
  Async<std::vector<DisplayRecord>> list_displays(TenantId tenant, DisplayId after, int limit) override {
    return state_.reading(sqlite::list_displays, tenant, after, limit);
  }
  Async<DisplayRecord> show_display(DisplayId id, TenantId tenant) override {
    return state_.reading(sqlite::show_display, id, tenant);
  }
  Async<Nothing> remove_display(DisplayId id, TenantId tenant) override {
    return state_.writing(sqlite::remove_display, id, tenant);
  }
  Async<SubscriptionRecord> put_subscription(SubscriptionRecord subscription) override {
    return state_.writing(sqlite::put_subscription, wall_now(), subscription);
  }
  Async<std::vector<SubscriptionRecord>> list_subscriptions(TenantId tenant, SubscriptionId after, int limit) override {
    return state_.reading(sqlite::list_subscriptions, tenant, after, limit);
  }
  Async<SubscriptionRecord> remove_subscription(SubscriptionId id, TenantId tenant) override {
    return state_.writing(sqlite::remove_subscription, id, tenant);
  }
  Async<std::vector<DesiredSubscription>> list_desired(ClusterId cluster, TenantId tenant, SubscriptionId after,
                                                       int limit) override {
    return state_.reading(sqlite::list_desired, cluster, tenant, after, limit);
  }

 private:
  State& state_;
};

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(Config config) {
  auto state = std::make_unique<State>();
  state->limits = config.limits;
  state->shared_connection = config.path == ":memory:";
  if (!state->shared_connection) {
    TRY(lock, FolderLock::take(config.path));
    state->lock = std::move(lock);
    TRY(made, make_private(config.path));
  }
  try {
    state->core = std::make_unique<Core>(config.path, config.limits, wall_now);
    state->hold = state->core->tick();
    state->publish();
  } catch (const std::exception& failure) {
    return Error{Errc::unavailable, "store_unavailable", fmt::format("cannot open {}: {}", config.path, failure.what())};
  }
  return std::unique_ptr<SqliteStore>(new SqliteStore(std::move(state)));
}

SqliteStore::SqliteStore(std::unique_ptr<State> state)
    : state_(std::move(state)), catalog_(std::make_unique<CatalogPort>(*state_)) {
  state_->writer = std::thread([s = state_.get()] { s->write_loop(); });
  state_->reader = std::thread([s = state_.get()] { s->read_loop(); });
}

SqliteStore::~SqliteStore() {
  state_->reads.close();
  state_->writes.close();
  state_->writer.join();
  state_->reader.join();
}

Catalog& SqliteStore::catalog() { return *catalog_; }

// ---- leases ----

Async<std::vector<lease::Answer>> SqliteStore::apply(lease::Batch batch) {
  return state_->write<std::vector<lease::Answer>>([batch = std::move(batch)](Core& c) { return c.apply(batch); },
                                                    Turn::lease);
}

// Lease time moves on the writer's thread by itself; this tells what the last tick found, and whether the thread is
// stuck. A stuck thread takes no jobs, and the askers of those that wait have long given up.
Async<TickReport> SqliteStore::tick() {
  state_->writes.expire();
  state_->reads.expire();
  if (boot_now() - Instant(Duration(state_->last_turn.load())) > 2s)
    co_return Error{Errc::unavailable, "store_stalled", "the store's disk does not answer or cannot be written to"};
  std::lock_guard guard(state_->mutex);
  TickReport report = state_->report;
  state_->report.hold_opened = state_->report.epoch_opened = false;
  co_return report;
}

Async<LeaseView> SqliteStore::revoke(CameraId camera, TenantId tenant) {
  return state_->write<LeaseView>([=](Core& c) { return c.revoke(camera, tenant); });
}
Async<std::vector<lease::LeaseRow>> SqliteStore::release_all(lease::Owner owner, std::string will_sha256) {
  return state_->write<std::vector<lease::LeaseRow>>([=](Core& c) { return c.release_all(owner, will_sha256); });
}
Async<std::vector<lease::LeaseRow>> SqliteStore::take_expired(int most) {
  return state_->write<std::vector<lease::LeaseRow>>([=](Core& c) { return c.take_expired(most); });
}
Async<std::vector<LeaseView>> SqliteStore::list(LeaseFilter filter) {
  return state_->read<std::vector<LeaseView>>([this, filter](Core::Reader& r) -> Result<std::vector<LeaseView>> {
    auto [now, clock] = state_->times();
    return r.list(filter, now, clock);
  });
}
Async<LeaseView> SqliteStore::show(CameraId camera, TenantId tenant) {
  return state_->read<LeaseView>([=, this](Core::Reader& r) {
    auto [now, clock] = state_->times();
    return r.show(camera, tenant, now, clock);
  });
}
Async<LeaseView> SqliteStore::note(LeaseWord word, TenantId tenant) {
  return state_->writing(&Core::note, word, tenant);
}
Async<BudgetAnswer> SqliteStore::consume(SiteId site, TenantId tenant, std::optional<BudgetUse> use) {
  return state_->write<BudgetAnswer>([=](Core& c) { return c.consume(site, tenant, use); });
}

// ---- events ----

Async<std::vector<Confirmation>> SqliteStore::append(std::vector<event::Event> events, EventSpeaker speaker) {
  return state_->write<std::vector<Confirmation>>(
      [events = std::move(events), speaker = std::move(speaker)](Core& c) { return c.append(events, speaker); });
}
Async<Nothing> SqliteStore::announce(std::vector<event::Event> announcements) {
  return state_->write<Nothing>([announcements = std::move(announcements)](Core& c) {
    c.announce(announcements);
    return ok();
  });
}
Async<EventPage> SqliteStore::read(std::int64_t after, int limit) {
  return state_->read<EventPage>([=, this](Core::Reader& r) -> Result<EventPage> {
    return r.read_events(after, limit, state_->epoch());
  });
}
Async<EventPlace> SqliteStore::newest() {
  return state_->read<EventPlace>([this](Core::Reader& r) -> Result<EventPlace> {
    return EventPlace{state_->epoch(), r.last_event()};
  });
}
Async<std::int64_t> SqliteStore::trim(EventRetention retention, int most) {
  return state_->write<std::int64_t>([=](Core& c) -> Result<std::int64_t> { return c.trim(retention, most); });
}

// ---- keys ----

Async<ApiKey> SqliteStore::add_key(ApiKey key, std::string secret_sha256) {
  return state_->write<ApiKey>([=](Core& c) { return sqlite::add_key(c.db(), wall_now(), key, secret_sha256); });
}
Async<std::vector<ApiKey>> SqliteStore::list_keys(TenantId tenant, KeyId after, int limit) {
  return state_->read<std::vector<ApiKey>>(
      [=](Core::Reader& r) -> Result<std::vector<ApiKey>> { return r.list_keys(tenant, after, limit); });
}
Async<Nothing> SqliteStore::revoke_key(KeyId id, TenantId tenant) {
  return state_->write<Nothing>([=](Core& c) { return sqlite::revoke_key(c.db(), id, tenant); });
}
Async<ApiKey> SqliteStore::find_key(std::string secret_sha256) {
  return state_->write<ApiKey>([=](Core& c) { return sqlite::find_key(c.db(), wall_now(), secret_sha256); });
}

}  // namespace weir::sqlite
