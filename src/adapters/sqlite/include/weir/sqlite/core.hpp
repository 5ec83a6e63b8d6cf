// Core: the embedded store's SQL, synchronous. SqliteStore runs it on its writer thread; the simulator runs it directly.
//
// Reading and writing happen inside the caller's transaction (`begin` … `commit`). Lease time lives in this object and
// is stored with every commit, so that no tick needs one. Failures are thrown as std::runtime_error; SqliteStore turns
// them into errors. One thread at a time.
#pragma once

#include "weir/lease/ledger.hpp"
#include "weir/ports/catalog.hpp"
#include "weir/ports/event_log.hpp"
#include "weir/ports/keys.hpp"
#include "weir/ports/lease_store.hpp"

#include <functional>
#include <memory>
#include <string>

namespace weir::sqlite {

class Db;

class Core {
 public:
  // `path` may be ":memory:". `clock` is the process's CLOCK_REALTIME.
  Core(const std::string& path, LeaseLimits limits, std::function<WallTime()> clock);
  ~Core();
  Core(const Core&) = delete;

  void begin();
  // True: lease time or the counter was written with it.
  bool commit();
  // Back to what is known to be written, lease time included. Also after a `begin` that failed.
  void rollback();
  // Undoes what one of several jobs in a transaction did.
  void mark_job();
  void undo_job();
  void keep_job();

  // Moves lease time on; needs no transaction. True if a hold was opened.
  bool tick();
  const lease::StoreState& state() const { return state_; }
  // For statements that need nothing else of it.
  Db& db() { return *db_; }
  LeaseTime now() const;

  std::vector<lease::Answer> apply(const lease::Batch& batch);
  Result<LeaseView> revoke(const CameraId& camera, const TenantId& tenant);
  Result<std::vector<lease::LeaseRow>> release_all(const lease::Owner& owner, const std::string& will_sha256);
  std::vector<lease::LeaseRow> take_expired(int most);
  Result<LeaseView> note(const LeaseWord& word, const TenantId& tenant);
  Result<BudgetAnswer> consume(const SiteId& site, const TenantId& tenant, const std::optional<BudgetUse>& use);

  std::vector<Confirmation> append(const std::vector<event::Event>& events, const EventSpeaker& speaker);
  void announce(const std::vector<event::Event>& announcements);
  std::int64_t trim(const EventRetention& retention, int most);

  Result<Tenant> add_tenant(Tenant tenant);
  Result<Nothing> remove_tenant(const TenantId& id);
  Result<Site> add_site(Site site);
  Result<Nothing> remove_site(const SiteId& id, const TenantId& tenant);
  Result<Site> set_budget(const SiteId& id, const TenantId& tenant, double capacity, double refill_per_min,
                          std::optional<double> tokens);
  Result<CameraRecord> add_camera(const camera::Config& config);
  Result<CameraRecord> edit_camera(const CameraId& id, const TenantId& tenant, const Cameras::CameraEdit& change);
  Result<Nothing> remove_camera(const CameraId& id, const TenantId& tenant);
  Result<int> count_crash(const CameraId& id, const TenantId& tenant);
  Result<Runner> register_runner(Runner runner, const std::string& will_sha256, const TenantId& tenant = {});
  Result<RunnerOrders> heartbeat(const RunnerId& id, const TenantId& tenant, const boost::json::object& body,
                                 int streams_owned);
  Result<Runner> change_runner(const RunnerId& id, const TenantId& tenant, const RunnerChange& change);
  Result<Nothing> remove_runner(const RunnerId& id, const TenantId& tenant);

  // What another connection to the same file needs to read on its own.
  class Reader;
  Reader& reader() { return *reader_; }

 private:
  class SqlRows;
  lease::Version draw();
  void put_in_charge(const camera::Config& config, const lease::Charge& charge);
  // False: the log has it already.
  bool store_event(const event::Event& event, const TenantId& tenant);
  bool knows_event(const std::string& event_id);

  const LeaseLimits limits_;
  const std::function<WallTime()> clock_;
  lease::StoreState state_;
  lease::StoreState kept_;  // as last written
  lease::StoreState at_begin_;
  lease::StoreState at_mark_;
  std::shared_ptr<Db> db_;
  std::unique_ptr<Reader> reader_;
};

// The reading half: lists and single rows. Its own connection where the store is a file.
class Core::Reader {
 public:
  explicit Reader(const std::string& path);          // opens a read-only connection
  explicit Reader(std::shared_ptr<Db> shared_db);    // uses the writer's
  ~Reader();

  // For statements that need nothing else of it.
  Db& db() { return *db_; }
  std::vector<LeaseView> list(const LeaseFilter& filter, LeaseTime now, WallTime clock);
  Result<LeaseView> show(const CameraId& camera, const TenantId& tenant, LeaseTime now, WallTime clock);
  EventPage read_events(std::int64_t after, int limit, std::int64_t epoch);
  std::int64_t last_event();
  std::vector<ApiKey> list_keys(const TenantId& tenant, const KeyId& after, int limit);
  std::vector<Tenant> list_tenants(const TenantId& only, const TenantId& after, int limit);
  std::vector<Site> list_sites(const TenantId& tenant, const SiteId& after, int limit, LeaseTime now);
  Result<Site> show_site(const SiteId& id, const TenantId& tenant, LeaseTime now);
  int count_cameras(const SiteId& id, const TenantId& tenant);
  Result<std::vector<CameraRecord>> list_cameras(const CameraFilter& filter);
  Result<CameraRecord> show_camera(const CameraId& id, const TenantId& tenant);
  std::vector<Runner> list_runners(const TenantId& tenant, const RunnerId& after, int limit, LeaseTime now,
                                   Duration live);
  Result<Runner> show_runner(const RunnerId& id, const TenantId& tenant, LeaseTime now, Duration live);
  std::vector<StreamRecord> list_streams(const TenantId& tenant, const SubjectId& after, int limit, LeaseTime now);
  Result<StreamRecord> show_stream(const SubjectId& id, const TenantId& tenant, LeaseTime now);

 private:
  std::shared_ptr<Db> db_;
};

}  // namespace weir::sqlite
