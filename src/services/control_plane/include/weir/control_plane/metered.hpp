// Metered: the four ports of the store with a stopwatch around every call (weir_store_seconds{operation}).
//
// Forwards and measures, nothing else, so that no handler can forget to. Loop thread only.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/net/metrics.hpp"
#include "weir/ports/catalog.hpp"
#include "weir/ports/event_log.hpp"
#include "weir/ports/keys.hpp"
#include "weir/ports/lease_store.hpp"

namespace weir::control_plane {

// One histogram an operation, made when the operation is first used.
class Stopwatch {
 public:
  Stopwatch(net::Metrics& metrics, Clock& clock, const char* operation)
      : metrics_(metrics), clock_(clock), operation_(operation) {}
  template <class T>
  boost::asio::awaitable<T> time(boost::asio::awaitable<T> work) {
    Instant start = clock_.now();
    T result = co_await std::move(work);
    histogram().observe(seconds(clock_.now() - start));
    co_return result;
  }

 private:
  net::Histogram& histogram();
  net::Metrics& metrics_;
  Clock& clock_;
  const char* operation_;
  net::Histogram* seconds_ = nullptr;
};

class MeteredLeaseStore final : public LeaseStore {
 public:
  MeteredLeaseStore(LeaseStore& inner, net::Metrics& metrics, Clock& clock);
  boost::asio::awaitable<Result<std::vector<lease::Answer>>> apply(lease::Batch batch) override;
  boost::asio::awaitable<Result<TickReport>> tick() override;
  boost::asio::awaitable<Result<LeaseView>> revoke(CameraId camera, TenantId tenant) override;
  boost::asio::awaitable<Result<std::vector<lease::LeaseRow>>> release_all(lease::Owner owner,
                                                                           std::string will_sha256) override;
  boost::asio::awaitable<Result<std::vector<lease::LeaseRow>>> take_expired(int most) override;
  boost::asio::awaitable<Result<std::vector<LeaseView>>> list(LeaseFilter filter) override;
  boost::asio::awaitable<Result<LeaseView>> show(CameraId camera, TenantId tenant) override;
  boost::asio::awaitable<Result<BudgetAnswer>> consume(SiteId site, TenantId tenant,
                                                       std::optional<BudgetUse> use) override;

 private:
  LeaseStore& inner_;
  Stopwatch acquire_, renew_, release_, tick_, revoke_, release_all_, take_expired_, list_, show_, consume_;
};

class MeteredEventLog final : public EventLog {
 public:
  MeteredEventLog(EventLog& inner, net::Metrics& metrics, Clock& clock);
  boost::asio::awaitable<Result<std::vector<Confirmation>>> append(std::vector<OutgoingEvent> events,
                                                                   EventSpeaker speaker) override;
  boost::asio::awaitable<Result<Nothing>> announce(std::vector<Announcement> announcements) override;
  boost::asio::awaitable<Result<EventPage>> read(std::int64_t after, int limit) override;
  boost::asio::awaitable<Result<EventPlace>> newest() override;
  boost::asio::awaitable<Result<std::int64_t>> trim(EventRetention retention, int most) override;

 private:
  EventLog& inner_;
  Stopwatch append_, announce_, read_, newest_, trim_;
};

class MeteredKeys final : public Keys {
 public:
  MeteredKeys(Keys& inner, net::Metrics& metrics, Clock& clock);
  Async<ApiKey> add_key(ApiKey key, std::string secret_sha256) override;
  Async<std::vector<ApiKey>> list_keys(TenantId tenant, KeyId after, int limit) override;
  Async<Nothing> revoke_key(KeyId id, TenantId tenant) override;
  Async<ApiKey> find_key(std::string secret_sha256) override;

 private:
  Keys& inner_;
  Stopwatch add_key_, list_keys_, revoke_key_, find_key_;
};

class MeteredCatalog final : public Catalog {
 public:
  MeteredCatalog(Catalog& inner, net::Metrics& metrics, Clock& clock);
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

 private:
  Catalog& inner_;
  Stopwatch ping_, add_tenant_, list_tenants_, remove_tenant_, add_site_, list_sites_, show_site_, count_cameras_, remove_site_,
      set_budget_, add_camera_, list_cameras_, show_camera_, edit_camera_, remove_camera_, count_crash_,
      register_runner_, heartbeat_, list_runners_, show_runner_, change_runner_, remove_runner_;
};

}  // namespace weir::control_plane
