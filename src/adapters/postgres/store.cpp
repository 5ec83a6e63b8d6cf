#include "weir/postgres/store.hpp"

#include "catalog.hpp"
#include "connection.hpp"
#include "events.hpp"
#include "keys.hpp"
#include "lease_statements.hpp"
#include "leases.hpp"
#include "pictures.hpp"
#include "schema.hpp"

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
    if (what.find("newer Weir") != std::string_view::npos) return Error{Errc::conflict, "newer_schema", std::string(what)};
    log::warn("store.unreachable", failure.what());
  }
  return std::unique_ptr<PostgresStore>(new PostgresStore(std::move(state)));
}

PostgresStore::PostgresStore(std::unique_ptr<State> state) : state_(std::move(state)) {
  for (int i = 0; i < std::max(1, state_->config.pool_size); ++i)
    state_->threads.emplace_back([s = state_.get()] { s->work_loop(); });
}

PostgresStore::~PostgresStore() {
  state_->jobs.close();
  for (std::thread& thread : state_->threads) thread.join();
}

const char* PostgresStore::renew_statement() { return kRenew; }

template <class T>
using Async = boost::asio::awaitable<Result<T>>;
using C = Connection;

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
  return state_->call<std::vector<lease::LeaseRow>>([=](C& c) { return postgres::take_expired(c, most); });
}
Async<std::vector<LeaseView>> PostgresStore::list(LeaseFilter filter) {
  return state_->call<std::vector<LeaseView>>([=](C& c) { return list_leases(c, filter); });
}
Async<LeaseView> PostgresStore::show(CameraId camera, TenantId tenant) {
  return state_->call<LeaseView>([=](C& c) { return show_lease(c, camera, tenant); });
}
Async<BudgetAnswer> PostgresStore::consume(SiteId site, TenantId tenant, std::optional<BudgetUse> use) {
  return state_->call<BudgetAnswer>([=](C& c) { return postgres::consume(c, site, tenant, use); });
}

// ---- catalog ----

Async<Nothing> PostgresStore::ping() {
  return state_->call<Nothing>([](C& c) {
    c.query("SELECT 1 FROM store_state");
    return ok();
  });
}
Async<Tenant> PostgresStore::add_tenant(Tenant tenant) {
  return state_->call<Tenant>([=](C& c) { return postgres::add_tenant(c, tenant); });
}
Async<std::vector<Tenant>> PostgresStore::list_tenants(TenantId only, TenantId after, int limit) {
  return state_->call<std::vector<Tenant>>([=](C& c) { return postgres::list_tenants(c, only, after, limit); });
}
Async<Nothing> PostgresStore::remove_tenant(TenantId id) {
  return state_->call<Nothing>([=](C& c) { return postgres::remove_tenant(c, id); });
}
Async<Site> PostgresStore::add_site(Site site) {
  return state_->call<Site>([=](C& c) { return postgres::add_site(c, site); });
}
Async<std::vector<Site>> PostgresStore::list_sites(TenantId tenant, SiteId after, int limit) {
  return state_->call<std::vector<Site>>([=](C& c) { return postgres::list_sites(c, tenant, after, limit); });
}
Async<Site> PostgresStore::show_site(SiteId id, TenantId tenant) {
  return state_->call<Site>([=](C& c) { return postgres::show_site(c, id, tenant); });
}
Async<int> PostgresStore::count_cameras(SiteId id, TenantId tenant) {
  return state_->call<int>([=](C& c) -> Result<int> { return postgres::count_cameras(c, id, tenant); });
}
Async<Nothing> PostgresStore::remove_site(SiteId id, TenantId tenant) {
  return state_->call<Nothing>([=](C& c) { return postgres::remove_site(c, id, tenant); });
}
Async<Site> PostgresStore::set_budget(SiteId id, TenantId tenant, double capacity, double refill_per_min,
                                      std::optional<double> tokens) {
  return state_->call<Site>([=](C& c) { return postgres::set_budget(c, id, tenant, capacity, refill_per_min, tokens); });
}
Async<CameraRecord> PostgresStore::add_camera(camera::Config config) {
  return state_->call<CameraRecord>([=, limits = state_->config.limits](C& c) { return postgres::add_camera(c, config, limits); });
}
Async<std::vector<CameraRecord>> PostgresStore::list_cameras(CameraFilter filter) {
  return state_->call<std::vector<CameraRecord>>([=](C& c) { return postgres::list_cameras(c, filter); });
}
Async<CameraRecord> PostgresStore::show_camera(CameraId id, TenantId tenant) {
  return state_->call<CameraRecord>([=](C& c) { return postgres::show_camera(c, id, tenant); });
}
Async<CameraRecord> PostgresStore::edit_camera(CameraId id, TenantId tenant, CameraEdit change) {
  return state_->call<CameraRecord>(
      [=, limits = state_->config.limits](C& c) { return postgres::edit_camera(c, id, tenant, change, limits); });
}
Async<Nothing> PostgresStore::remove_camera(CameraId id, TenantId tenant) {
  return state_->call<Nothing>([=, limits = state_->config.limits](C& c) { return postgres::remove_camera(c, id, tenant, limits); });
}
Async<int> PostgresStore::count_crash(CameraId id, TenantId tenant) {
  return state_->call<int>([=](C& c) { return postgres::count_crash(c, id, tenant); });
}
Async<Runner> PostgresStore::register_runner(Runner runner, std::string will, TenantId tenant) {
  return state_->call<Runner>(
      [=, limits = state_->config.limits](C& c) { return postgres::register_runner(c, runner, will, tenant, limits); });
}
Async<RunnerOrders> PostgresStore::heartbeat(RunnerId id, TenantId tenant, boost::json::object body,
                                             int streams_owned) {
  return state_->call<RunnerOrders>([=, limits = state_->config.limits](C& c) {
    return postgres::heartbeat(c, id, tenant, body, streams_owned, limits);
  });
}
Async<std::vector<Runner>> PostgresStore::list_runners(TenantId tenant, RunnerId after, int limit) {
  return state_->call<std::vector<Runner>>(
      [=, limits = state_->config.limits](C& c) { return postgres::list_runners(c, tenant, after, limit, limits); });
}
Async<Runner> PostgresStore::show_runner(RunnerId id, TenantId tenant) {
  return state_->call<Runner>([=, limits = state_->config.limits](C& c) { return postgres::show_runner(c, id, tenant, limits); });
}
Async<Runner> PostgresStore::change_runner(RunnerId id, TenantId tenant, RunnerChange change) {
  return state_->call<Runner>(
      [=, limits = state_->config.limits](C& c) { return postgres::change_runner(c, id, tenant, change, limits); });
}
Async<Nothing> PostgresStore::remove_runner(RunnerId id, TenantId tenant) {
  return state_->call<Nothing>([=, limits = state_->config.limits](C& c) { return postgres::remove_runner(c, id, tenant, limits); });
}

// ---- events ----

Async<std::vector<Confirmation>> PostgresStore::append(std::vector<OutgoingEvent> events, EventSpeaker speaker) {
  return state_->call<std::vector<Confirmation>>([events = std::move(events), speaker = std::move(speaker)](C& c) {
    return append_events(c, events, speaker);
  });
}
Async<Nothing> PostgresStore::announce(std::vector<Announcement> announcements) {
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

// ---- keys ----

Async<Nothing> PostgresStore::put_picture(CameraId camera, SnapshotPicture picture) {
  return state_->call<Nothing>([=](C& c) { return postgres::put_picture(c, camera, picture); });
}
Async<std::optional<SnapshotPicture>> PostgresStore::find_picture(CameraId camera, std::string request) {
  return state_->call<std::optional<SnapshotPicture>>([=](C& c) { return postgres::find_picture(c, camera, request); });
}
Async<ApiKey> PostgresStore::add_key(ApiKey key, std::string secret_sha256) {
  return state_->call<ApiKey>([=](C& c) { return postgres::add_key(c, key, secret_sha256); });
}
Async<std::vector<ApiKey>> PostgresStore::list_keys(TenantId tenant, KeyId after, int limit) {
  return state_->call<std::vector<ApiKey>>([=](C& c) { return postgres::list_keys(c, tenant, after, limit); });
}
Async<Nothing> PostgresStore::revoke_key(KeyId id, TenantId tenant) {
  return state_->call<Nothing>([=](C& c) { return postgres::revoke_key(c, id, tenant); });
}
Async<ApiKey> PostgresStore::find_key(std::string secret_sha256) {
  return state_->call<ApiKey>([=](C& c) { return postgres::find_key(c, secret_sha256); });
}

}  // namespace weir::postgres
