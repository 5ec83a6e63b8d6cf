#include "weir/postgres/store.hpp"

#include "catalog.hpp"
#include "connection.hpp"
#include "displays.hpp"
#include "events.hpp"
#include "keys.hpp"
#include "lease_statements.hpp"
#include "leases.hpp"
#include "models.hpp"
#include "pictures.hpp"
#include "schema.hpp"
#include "streams.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/log.hpp"

#include <atomic>
#include <thread>

namespace weir::postgres {

namespace {
constexpr size_t kQueueMax = 20'000;
constexpr Duration kStatementTimeout = 800ms;
constexpr Duration kConnectTimeout = 2s;
constexpr Duration kReconnectPause = 250ms;

// The session of the pool thread that runs a job.
thread_local Connection* t_session = nullptr;

Error unavailable(std::string_view why) {
  return {Errc::unavailable, "store_unavailable", fmt::format("PostgreSQL: {}", why)};
}
}  // namespace

struct PostgresStore::State {
  // Constant after construction.
  Config config;
  // Any thread.
  JobQueue jobs{kQueueMax};
  std::mutex migrating;
  std::atomic<bool> migrated{false};
  std::vector<std::thread> threads;

  std::unique_ptr<Connection> connect();
  void work_loop();
  void run(Job& job, std::unique_ptr<Connection>& session, Instant& retry_at);

  template <class T>
  Async<T> call(std::function<Result<T>(Connection&)> work, Turn turn = Turn::usual) {
    return run_blocking<T>(jobs, [work = std::move(work)]() -> Result<T> { return work(*t_session); }, turn);
  }
  // Runs a statement with these arguments.
  template <class R, class... Parameters, class... Arguments>
  Async<ValueOf<R>> ask(R (*statement)(Connection&, Parameters...), Arguments... arguments) {
    return call<ValueOf<R>>([=](Connection& c) -> Result<ValueOf<R>> { return statement(c, arguments...); });
  }
};

std::unique_ptr<Connection> PostgresStore::State::connect() {
  auto session = std::make_unique<Connection>(config.url.reveal(), kConnectTimeout, kStatementTimeout);
  if (!migrated) {
    std::lock_guard guard(migrating);
    if (!migrated) migrate(*session);
    migrated = true;
  }
  return session;
}

void PostgresStore::State::run(Job& job, std::unique_ptr<Connection>& session, Instant& retry_at) {
  try {
    if (session && session->broken()) session.reset();
    if (!session) {
      if (boot_now() < retry_at) return job.fail(unavailable("not connected"));
      session = connect();
    }
    t_session = session.get();
    job.work();
  } catch (const PgFailure& failure) {
    job.fail(unavailable(failure.what()));
    // A server that became a standby, or is going down, keeps its sessions; the next one may find the new primary.
    if (failure.sqlstate == "25006" || failure.sqlstate.starts_with("57P")) session.reset();
    if (!session || session->broken()) retry_at = boot_now() + kReconnectPause;
  } catch (const std::exception& failure) {
    session.reset();
    job.fail(unavailable(failure.what()));
  }
}

void PostgresStore::State::work_loop() {
  std::unique_ptr<Connection> session;
  Instant retry_at{};
  while (!jobs.closed()) {
    for (Job& job : jobs.take(1, 10s)) {
      run(job, session, retry_at);
      job.done();
    }
  }
}

using C = Connection;

class PostgresStore::CatalogPort final : public Catalog {
 public:
  explicit CatalogPort(State& state) : state_(state) {}

  Async<Nothing> ping() override {
    return state_.call<Nothing>([](C& c) {
      c.query("SELECT 1 FROM store_state");
      return ok();
    });
  }
  Async<Tenant> add_tenant(Tenant tenant) override { return state_.ask(postgres::add_tenant, tenant); }
  Async<std::vector<Tenant>> list_tenants(TenantId only, TenantId after, int limit) override {
    return state_.ask(postgres::list_tenants, only, after, limit);
  }
  Async<Nothing> remove_tenant(TenantId id) override { return state_.ask(postgres::remove_tenant, id); }
  Async<Site> add_site(Site site) override { return state_.ask(postgres::add_site, site); }
  Async<std::vector<Site>> list_sites(TenantId tenant, SiteId after, int limit) override {
    return state_.ask(postgres::list_sites, tenant, after, limit);
  }
  Async<Site> show_site(SiteId id, TenantId tenant) override { return state_.ask(postgres::show_site, id, tenant); }
  Async<int> count_cameras(SiteId id, TenantId tenant) override {
    return state_.ask(postgres::count_cameras, id, tenant);
  }
  Async<Nothing> remove_site(SiteId id, TenantId tenant) override {
    return state_.ask(postgres::remove_site, id, tenant);
  }
  Async<Site> set_budget(SiteId id, TenantId tenant, double capacity, double refill_per_min,
                         std::optional<double> tokens) override {
    return state_.ask(postgres::set_budget, id, tenant, capacity, refill_per_min, tokens);
  }
  Async<CameraRecord> add_camera(camera::Config config) override {
    return state_.ask(postgres::add_camera, config, state_.config.limits);
  }
  Async<std::vector<CameraRecord>> list_cameras(CameraFilter filter) override {
    return state_.ask(postgres::list_cameras, filter);
  }
  Async<CameraRecord> show_camera(CameraId id, TenantId tenant) override {
    return state_.ask(postgres::show_camera, id, tenant);
  }
  Async<CameraRecord> edit_camera(CameraId id, TenantId tenant, CameraEdit change) override {
    return state_.ask(postgres::edit_camera, id, tenant, change, state_.config.limits);
  }
  Async<Nothing> remove_camera(CameraId id, TenantId tenant) override {
    return state_.ask(postgres::remove_camera, id, tenant, state_.config.limits);
  }
  Async<int> count_crash(CameraId id, TenantId tenant) override {
    return state_.ask(postgres::count_crash, id, tenant);
  }
  Async<Runner> register_runner(Runner runner, std::string will, TenantId tenant) override {
    return state_.ask(postgres::register_runner, runner, will, tenant, state_.config.limits);
  }
  Async<RunnerOrders> heartbeat(RunnerId id, TenantId tenant, boost::json::object body, int streams_owned) override {
    return state_.ask(postgres::heartbeat, id, tenant, body, streams_owned, state_.config.limits);
  }
  Async<std::vector<Runner>> list_runners(TenantId tenant, RunnerId after, int limit) override {
    return state_.ask(postgres::list_runners, tenant, after, limit, state_.config.limits);
  }
  Async<Runner> show_runner(RunnerId id, TenantId tenant) override {
    return state_.ask(postgres::show_runner, id, tenant, state_.config.limits);
  }
  Async<Runner> change_runner(RunnerId id, TenantId tenant, RunnerChange change) override {
    return state_.ask(postgres::change_runner, id, tenant, change, state_.config.limits);
  }
  Async<Nothing> remove_runner(RunnerId id, TenantId tenant) override {
    return state_.ask(postgres::remove_runner, id, tenant, state_.config.limits);
  }
  Async<StreamRecord> put_stream(StreamRecord stream) override { return state_.ask(postgres::put_stream, stream); }
  Async<Nothing> tell_stream(StreamTold told) override { return state_.ask(postgres::tell_stream, told); }
  Async<std::vector<StreamRecord>> list_streams(TenantId tenant, SubjectId after, int limit) override {
    return state_.ask(postgres::list_streams, tenant, after, limit);
  }
  Async<StreamRecord> show_stream(SubjectId id, TenantId tenant) override {
    return state_.ask(postgres::show_stream, id, tenant);
  }
  Async<Nothing> remove_stream(SubjectId id, TenantId tenant) override {
    return state_.ask(postgres::remove_stream, id, tenant);
  }
  Async<ModelRecord> put_model(ModelRecord model, Put how) override {
    return state_.ask(postgres::put_model, model, how);
  }
  Async<std::vector<ModelRecord>> list_models(TenantId tenant, ModelId after, int limit) override {
    return state_.ask(postgres::list_models, tenant, after, limit);
  }
  Async<ModelRecord> show_model(ModelId id, TenantId tenant) override {
    return state_.ask(postgres::show_model, id, tenant);
  }
  Async<ModelRecord> set_model_file(ModelId id, TenantId tenant, ModelFile file) override {
    return state_.ask(postgres::set_model_file, id, tenant, file);
  }
  Async<Nothing> remove_model(ModelId id, TenantId tenant) override {
    return state_.ask(postgres::remove_model, id, tenant);
  }
  Async<PlaylistRecord> put_playlist(PlaylistRecord playlist, Put how) override {
    return state_.ask(postgres::put_playlist, playlist, how);
  }
  Async<std::vector<PlaylistRecord>> list_playlists(TenantId tenant, PlaylistId after, int limit) override {
    return state_.ask(postgres::list_playlists, tenant, after, limit);
  }
  Async<PlaylistRecord> show_playlist(PlaylistId id, TenantId tenant) override {
    return state_.ask(postgres::show_playlist, id, tenant);
  }
  Async<Nothing> remove_playlist(PlaylistId id, TenantId tenant) override {
    return state_.ask(postgres::remove_playlist, id, tenant);
  }
  Async<DisplayRecord> put_display(DisplayRecord display, Put how) override {
    return state_.ask(postgres::put_display, display, how);
  }
  Async<std::vector<DisplayRecord>> list_displays(TenantId tenant, DisplayId after, int limit) override {
    return state_.ask(postgres::list_displays, tenant, after, limit);
  }
  Async<DisplayRecord> show_display(DisplayId id, TenantId tenant) override {
    return state_.ask(postgres::show_display, id, tenant);
  }
  Async<Nothing> remove_display(DisplayId id, TenantId tenant) override {
    return state_.ask(postgres::remove_display, id, tenant);
  }
  Async<SubscriptionRecord> put_subscription(SubscriptionRecord subscription) override {
    return state_.ask(postgres::put_subscription, subscription);
  }
  Async<std::vector<SubscriptionRecord>> list_subscriptions(TenantId tenant, SubscriptionId after, int limit) override {
    return state_.ask(postgres::list_subscriptions, tenant, after, limit);
  }
  Async<SubscriptionRecord> remove_subscription(SubscriptionId id, TenantId tenant) override {
    return state_.ask(postgres::remove_subscription, id, tenant);
  }
  Async<std::vector<DesiredSubscription>> list_desired(ClusterId cluster, TenantId tenant, SubscriptionId after,
                                                       int limit) override {
    return state_.ask(postgres::list_desired, cluster, tenant, after, limit);
  }

 private:
  State& state_;
};

Result<std::unique_ptr<PostgresStore>> PostgresStore::open(Config config) {
  char* problem = nullptr;
  PQconninfoOption* parsed = PQconninfoParse(config.url.reveal().c_str(), &problem);
  PQfreemem(problem);
  if (parsed == nullptr)
    return Error{Errc::invalid, "bad_database_url", "database_url is not a PostgreSQL URL (postgres://user@host:port/name)"};
  PQconninfoFree(parsed);
  auto state = std::make_unique<State>();
  state->config = std::move(config);
  try {
    state->connect();
  } catch (const PgFailure& failure) {
    std::string_view what = failure.what();
    if (what.find("newer Weir") != std::string_view::npos)
      return Error{Errc::conflict, "newer_schema", std::string(what)};
    if (failure.sqlstate == kMayNot) return Error{Errc::forbidden, "old_schema", std::string(what)};
    log::warn("store.unreachable", failure.what());
  }
  return std::unique_ptr<PostgresStore>(new PostgresStore(std::move(state)));
}

PostgresStore::PostgresStore(std::unique_ptr<State> state)
    : state_(std::move(state)), catalog_(std::make_unique<CatalogPort>(*state_)) {
  for (int i = 0; i < std::max(1, state_->config.pool_size); ++i)
    state_->threads.emplace_back([s = state_.get()] { s->work_loop(); });
}

PostgresStore::~PostgresStore() {
  state_->jobs.close();
  for (std::thread& thread : state_->threads) thread.join();
}

const char* PostgresStore::renew_statement() { return kRenew; }

Catalog& PostgresStore::catalog() { return *catalog_; }

// ---- leases ----

Async<std::vector<lease::Answer>> PostgresStore::apply(lease::Batch batch) {
  return state_->call<std::vector<lease::Answer>>(
      [batch = std::move(batch), limits = state_->config.limits](C& c) { return postgres::apply(c, batch, limits); },
      Turn::lease);
}
Async<TickReport> PostgresStore::tick() {
  // Before all that waits: a tick that queues behind a flood would look like a store that was away.
  return state_->call<TickReport>([limits = state_->config.limits](C& c) { return postgres::tick(c, limits); },
                                  Turn::tick);
}
Async<LeaseView> PostgresStore::revoke(CameraId camera, TenantId tenant) {
  return state_->call<LeaseView>([=, limits = state_->config.limits](C& c) { return postgres::revoke(c, camera, tenant, limits); });
}
Async<std::vector<lease::LeaseRow>> PostgresStore::release_all(lease::Owner owner, std::string will) {
  return state_->call<std::vector<lease::LeaseRow>>(
      [=, limits = state_->config.limits](C& c) { return postgres::release_all(c, owner, will, limits); });
}
Async<std::vector<lease::LeaseRow>> PostgresStore::take_expired(int most) {
  return state_->ask(postgres::take_expired, most);
}
Async<std::vector<LeaseView>> PostgresStore::list(LeaseFilter filter) {
  return state_->call<std::vector<LeaseView>>([=](C& c) { return list_leases(c, filter); });
}
Async<LeaseView> PostgresStore::show(CameraId camera, TenantId tenant) {
  return state_->call<LeaseView>([=](C& c) { return show_lease(c, camera, tenant); });
}
Async<LeaseView> PostgresStore::note(LeaseWord word, TenantId tenant) {
  return state_->ask(postgres::note_lease, word, tenant);
}
Async<BudgetAnswer> PostgresStore::consume(SiteId site, TenantId tenant, std::optional<BudgetUse> use) {
  return state_->ask(postgres::consume, site, tenant, use);
}

// ---- events ----

Async<std::vector<Confirmation>> PostgresStore::append(std::vector<event::Event> events, EventSpeaker speaker) {
  return state_->call<std::vector<Confirmation>>([events = std::move(events), speaker = std::move(speaker)](C& c) {
    return append_events(c, events, speaker);
  });
}
Async<Nothing> PostgresStore::announce(std::vector<event::Event> announcements) {
  return state_->call<Nothing>(
      [announcements = std::move(announcements)](C& c) { return postgres::announce(c, announcements); });
}
Async<EventPage> PostgresStore::read(std::int64_t after, int limit) {
  return state_->call<EventPage>([=](C& c) { return read_events(c, after, limit); });
}
Async<EventPlace> PostgresStore::newest() {
  return state_->call<EventPlace>([](C& c) { return newest_event(c); });
}
Async<std::int64_t> PostgresStore::trim(EventRetention retention, int most) {
  return state_->call<std::int64_t>([=](C& c) -> Result<std::int64_t> { return trim_events(c, retention, most); });
}

// ---- keys and pictures ----

Async<Nothing> PostgresStore::put_picture(CameraId camera, SnapshotPicture picture) {
  return state_->ask(postgres::put_picture, camera, picture);
}
Async<std::optional<SnapshotPicture>> PostgresStore::find_picture(CameraId camera, std::string request) {
  return state_->ask(postgres::find_picture, camera, request);
}
Async<ApiKey> PostgresStore::add_key(ApiKey key, std::string secret_sha256) {
  return state_->ask(postgres::add_key, key, secret_sha256);
}
Async<std::vector<ApiKey>> PostgresStore::list_keys(TenantId tenant, KeyId after, int limit) {
  return state_->ask(postgres::list_keys, tenant, after, limit);
}
Async<Nothing> PostgresStore::revoke_key(KeyId id, TenantId tenant) {
  return state_->ask(postgres::revoke_key, id, tenant);
}
Async<ApiKey> PostgresStore::find_key(std::string secret_sha256) {
  return state_->ask(postgres::find_key, secret_sha256);
}

}  // namespace weir::postgres
