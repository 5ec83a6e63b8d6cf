// SqliteStore: the embedded default. One file, one writer thread with group commit, one reader thread.
//
// Write-ahead log with synchronous=FULL: what was answered is on the disk. Jobs that wait while a commit is flushed
// share the next one. A lock beside the file keeps a second control plane out. The destructor fails what
// still waits and joins both threads.
#pragma once

#include "weir/base/blocking.hpp"
#include "weir/ports/catalog.hpp"
#include "weir/ports/event_log.hpp"
#include "weir/ports/keys.hpp"
#include "weir/ports/lease_store.hpp"

#include <memory>
#include <string>

namespace weir::sqlite {

struct Config {
  std::string path;          // ":memory:" for tests
  LeaseLimits limits = {};
};

class SqliteStore final : public LeaseStore, public Catalog, public EventLog, public Keys {
 public:
  static Result<std::unique_ptr<SqliteStore>> open(Config config);
  ~SqliteStore() override;
  SqliteStore(const SqliteStore&) = delete;

  template <class T>
  using Async = boost::asio::awaitable<Result<T>>;

  Async<std::vector<lease::Answer>> apply(lease::Batch batch) override;
  Async<TickReport> tick() override;
  Async<LeaseView> revoke(CameraId camera, TenantId tenant) override;
  Async<std::vector<lease::LeaseRow>> release_all(lease::Owner owner, std::string will_sha256) override;
  Async<std::vector<lease::LeaseRow>> take_expired(int most) override;
  Async<std::vector<LeaseView>> list(LeaseFilter filter) override;
  Async<LeaseView> show(CameraId camera, TenantId tenant) override;
  Async<BudgetAnswer> consume(SiteId site, TenantId tenant, std::optional<BudgetUse> use) override;

  Async<Nothing> ping() override;
  Async<Tenant> add_tenant(Tenant tenant) override;
  Async<std::vector<Tenant>> list_tenants(TenantId only, TenantId after, int limit) override;
  Async<Nothing> remove_tenant(TenantId id) override;
  Async<Site> add_site(Site site) override;
  Async<std::vector<Site>> list_sites(TenantId tenant, SiteId after, int limit) override;
  Async<Site> show_site(SiteId id, TenantId tenant) override;
  Async<int> count_cameras(SiteId id, TenantId tenant) override;
  Async<Nothing> remove_site(SiteId id, TenantId tenant) override;
  Async<Site> set_budget(SiteId id, TenantId tenant, double capacity, double refill_per_min,
                         std::optional<double> tokens) override;
  Async<CameraRecord> add_camera(camera::Config config) override;
  Async<std::vector<CameraRecord>> list_cameras(CameraFilter filter) override;
  Async<CameraRecord> show_camera(CameraId id, TenantId tenant) override;
  Async<CameraRecord> edit_camera(CameraId id, TenantId tenant, CameraEdit change) override;
  Async<Nothing> remove_camera(CameraId id, TenantId tenant) override;
  Async<int> count_crash(CameraId id, TenantId tenant) override;
  Async<Runner> register_runner(Runner runner, std::string will_sha256, TenantId tenant) override;
  Async<RunnerOrders> heartbeat(RunnerId id, TenantId tenant, boost::json::object body, int streams_owned) override;
  Async<std::vector<Runner>> list_runners(TenantId tenant, RunnerId after, int limit) override;
  Async<Runner> show_runner(RunnerId id, TenantId tenant) override;
  Async<Runner> change_runner(RunnerId id, TenantId tenant, RunnerChange change) override;
  Async<Nothing> remove_runner(RunnerId id, TenantId tenant) override;

  Async<std::vector<Confirmation>> append(std::vector<OutgoingEvent> events, EventSpeaker speaker) override;
  Async<Nothing> announce(std::vector<Announcement> announcements) override;
  Async<EventPage> read(std::int64_t after, int limit) override;
  Async<EventPlace> newest() override;
  Async<std::int64_t> trim(EventRetention retention, int most) override;

  Async<ApiKey> add_key(ApiKey key, std::string secret_sha256) override;
  Async<std::vector<ApiKey>> list_keys(TenantId tenant, KeyId after, int limit) override;
  Async<Nothing> revoke_key(KeyId id, TenantId tenant) override;
  Async<ApiKey> find_key(std::string secret_sha256) override;

 private:
  struct State;
  explicit SqliteStore(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weir::sqlite
