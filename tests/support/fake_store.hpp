// FakeStore: the store in memory, for unit tests and the simulator. The contract suite proves that it behaves as the
// real ones. Its clock is the test's. Loop thread only.
#pragma once

#include "weir/lease/ledger.hpp"
#include "weir/ports/catalog.hpp"
#include "weir/ports/event_log.hpp"
#include "weir/ports/keys.hpp"
#include "weir/ports/lease_store.hpp"

#include <functional>
#include <map>
#include <set>

namespace weir::test {

struct FakeBoot {
  std::string will_sha256;
  bool dead = false;
  lease::Version will_after = {};  // the last one before its will
};

// The rows, copyable, so that a simulated failover can go back to an older state.
struct FakeRows {
  lease::StoreState state;
  std::map<CameraId, lease::LeaseRow> leases;
  std::map<lease::Owner, FakeBoot> boots;
  std::map<std::pair<CameraId, RunnerId>, std::pair<LeaseTime, int>> avoids;
  std::map<CameraId, lease::Version> budget_uses;
  std::map<CameraId, LeaseTime> expiries_told;
  std::map<std::pair<CameraId, lease::Version>, LeaseNote> notes;  // by the grant
  std::map<TenantId, Tenant> tenants;
  std::map<SiteId, Site> sites;
  std::map<CameraId, CameraRecord> cameras;
  std::map<RunnerId, Runner> runners;
  std::map<RunnerId, LeaseTime> heartbeats;
  std::map<SubjectId, StreamRecord> streams;
  std::map<ModelId, ModelRecord> models;
  std::map<PlaylistId, PlaylistRecord> playlists;
  std::map<DisplayId, DisplayRecord> displays;
  std::map<SubscriptionId, SubscriptionRecord> subscriptions;
  std::map<std::int64_t, StoredEvent> events;
  std::map<std::string, std::int64_t> event_ids;  // to their sequence
  std::int64_t last_event = 0, forgotten_to = 0;
  std::map<KeyId, ApiKey> keys;
  std::map<std::string, KeyId> key_hashes;
};

// Whether it is another tenant's than the asker's; an empty asker asks for all.
inline bool foreign(const TenantId& asker, const TenantId& owner) { return !asker.empty() && owner != asker; }

template <class T>
using Async = boost::asio::awaitable<Result<T>>;

// What all its parts share.
class FakeTables {
 public:
  FakeRows& rows() { return rows_; }
  LeaseTime now() const { return lease::lease_time(rows_.state, clock_()); }

 protected:
  FakeTables() = default;
  FakeTables(std::function<WallTime()> clock, LeaseLimits limits) : clock_(std::move(clock)), limits_(limits) {
    rows_.state.mark = clock_();
  }
  lease::Version draw() { return lease::Version::make(rows_.state.epoch, ++rows_.state.counter); }
  int held_by(const RunnerId& runner) const;

  const std::function<WallTime()> clock_ = {};
  const LeaseLimits limits_ = {};
  FakeRows rows_;
};

class FakeLeases : public LeaseStore, public virtual FakeTables {
 public:
  // The synchronous half, which the simulator calls.
  lease::Applied apply_now(const lease::Batch& batch);
  bool tick_now();
  void open_epoch_now();
  Result<std::vector<lease::LeaseRow>> release_all_now(const lease::Owner& owner, const std::string& will_sha256);
  std::vector<lease::LeaseRow> take_expired_now(int most);
  Result<BudgetAnswer> consume_now(const SiteId& site, const TenantId& tenant, const std::optional<BudgetUse>& use);
  Result<Nothing> revoke_now(const CameraId& camera);
  void heartbeat_now(const RunnerId& runner, int capacity);
  void add_camera_now(const CameraId& camera, const SiteId& site);

  Async<std::vector<lease::Answer>> apply(lease::Batch batch) override;
  Async<TickReport> tick() override;
  Async<LeaseView> revoke(CameraId camera, TenantId tenant) override;
  Async<std::vector<lease::LeaseRow>> release_all(lease::Owner owner, std::string will_sha256) override;
  Async<std::vector<lease::LeaseRow>> take_expired(int most) override;
  Async<std::vector<LeaseView>> list(LeaseFilter filter) override;
  Async<LeaseView> show(CameraId camera, TenantId tenant) override;
  Async<LeaseView> note(LeaseWord word, TenantId tenant) override;
  Async<BudgetAnswer> consume(SiteId site, TenantId tenant, std::optional<BudgetUse> use) override;

 private:
  class Access;
  LeaseView view(const lease::LeaseRow& row) const;

  bool epoch_opened_ = false;
  bool hold_opened_ = false;
};

class FakeCatalog : public Catalog, public virtual FakeTables {
 public:
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
  Async<StreamRecord> put_stream(StreamRecord stream) override;
  Async<Nothing> tell_stream(StreamTold told) override;
  Async<std::vector<StreamRecord>> list_streams(TenantId tenant, SubjectId after, int limit) override;
  Async<StreamRecord> show_stream(SubjectId id, TenantId tenant) override;
  Async<Nothing> remove_stream(SubjectId id, TenantId tenant) override;
  Async<ModelRecord> put_model(ModelRecord model, Put how) override;
  Async<std::vector<ModelRecord>> list_models(TenantId tenant, ModelId after, int limit) override;
  Async<ModelRecord> show_model(ModelId id, TenantId tenant) override;
  Async<ModelRecord> set_model_file(ModelId id, TenantId tenant, ModelFile file) override;
  Async<Nothing> remove_model(ModelId id, TenantId tenant) override;
  Async<PlaylistRecord> put_playlist(PlaylistRecord playlist, Put how) override;
  Async<std::vector<PlaylistRecord>> list_playlists(TenantId tenant, PlaylistId after, int limit) override;
  Async<PlaylistRecord> show_playlist(PlaylistId id, TenantId tenant) override;
  Async<Nothing> remove_playlist(PlaylistId id, TenantId tenant) override;
  Async<DisplayRecord> put_display(DisplayRecord display, Put how) override;
  Async<std::vector<DisplayRecord>> list_displays(TenantId tenant, DisplayId after, int limit) override;
  Async<DisplayRecord> show_display(DisplayId id, TenantId tenant) override;
  Async<Nothing> remove_display(DisplayId id, TenantId tenant) override;
  Async<SubscriptionRecord> put_subscription(SubscriptionRecord subscription) override;
  Async<std::vector<SubscriptionRecord>> list_subscriptions(TenantId tenant, SubscriptionId after, int limit) override;
  Async<SubscriptionRecord> remove_subscription(SubscriptionId id, TenantId tenant) override;
  Async<std::vector<DesiredSubscription>> list_desired(ClusterId cluster, TenantId tenant, SubscriptionId after,
                                                       int limit) override;

 private:
  StreamRecord as_shown(StreamRecord stream) const;
  void put_in_charge(const camera::Config& config, const lease::Charge& charge);
  Runner as_shown(const Runner& runner) const;
};

class FakeEventLog : public EventLog, public virtual FakeTables {
 public:
  Async<std::vector<Confirmation>> append(std::vector<event::Event> events, EventSpeaker speaker) override;
  Async<Nothing> announce(std::vector<event::Event> announcements) override;
  Async<EventPage> read(std::int64_t after, int limit) override;
  Async<EventPlace> newest() override;
  Async<std::int64_t> trim(EventRetention retention, int most) override;

 private:
  bool accepts(const lease::LeaseRow& row, const EventSpeaker& speaker, lease::Version stamped) const;
  bool is_over(const event::Stamp& stamp) const;
  Confirmation append_now(const event::Event& event, const EventSpeaker& speaker);
};

class FakeKeys : public Keys, public virtual FakeTables {
 public:
  Async<ApiKey> add_key(ApiKey key, std::string secret_sha256) override;
  Async<std::vector<ApiKey>> list_keys(TenantId tenant, KeyId after, int limit) override;
  Async<Nothing> revoke_key(KeyId id, TenantId tenant) override;
  Async<ApiKey> find_key(std::string secret_sha256) override;
};

class FakeStore final : public FakeLeases, public FakeCatalog, public FakeEventLog, public FakeKeys {
 public:
  FakeStore(std::function<WallTime()> clock, LeaseLimits limits = {}) : FakeTables(std::move(clock), limits) {}
};

}  // namespace weir::test
