// ScriptedStore: a store for tests of the routes that answers what the test told it to, and nothing else.
// The rules of a real store are tested in the contract suite; here only what the routes make of its answers matters.
#pragma once

#include "weir/ports/catalog.hpp"
#include "weir/ports/event_log.hpp"
#include "weir/ports/lease_store.hpp"

#include <climits>
#include <functional>

namespace weir::control_plane {

class ScriptedStore final : public LeaseStore, public Catalog, public EventLog {
 public:
  template <class T>
  using Answer = boost::asio::awaitable<Result<T>>;
  struct UnderWay {
    explicit UnderWay(ScriptedStore& at) : store(at) { store.reads_most = std::max(store.reads_most, ++store.reads); }
    ~UnderWay() { --store.reads; }
    ScriptedStore& store;
  };

  std::function<Result<std::vector<lease::Answer>>(const lease::Batch&)> on_apply;
  std::function<Result<TickReport>()> on_tick;
  std::function<Result<std::vector<lease::LeaseRow>>(const lease::Owner&, const std::string&)> on_release_all;
  std::vector<lease::LeaseRow> expired;  // given out once
  std::function<Result<std::vector<LeaseView>>(const LeaseFilter&)> on_list;
  std::function<Result<LeaseView>(const CameraId&)> on_show;
  std::function<Result<BudgetAnswer>(const std::optional<BudgetUse>&)> on_consume;
  std::function<Result<Runner>(const Runner&, const std::string&)> on_register;
  std::function<Result<RunnerOrders>(const RunnerId&, const boost::json::object&, int)> on_heartbeat;
  std::function<Result<std::vector<Confirmation>>(const std::vector<OutgoingEvent>&, const EventSpeaker&)> on_append;
  std::vector<StoredEvent> stored;    // what the log holds
  std::vector<std::vector<Announcement>> announced;  // by the step
  int announce_failures = 0;                         // steps that fail before one succeeds
  EventPlace last_event = {1, 0};
  std::int64_t forgotten_to = 0;
  std::function<boost::asio::awaitable<void>()> read_takes;  // the time of a read of events
  int reads = 0, reads_most = 0;      // at once
  int page_events_max = INT_MAX;      // a page ends there, whatever was asked for
  std::vector<CameraRecord> cameras;  // in the order of their ids
  bool cameras_readable = true;
  std::vector<Runner> runners;
  bool up = false;                    // what is not scripted: nothing found, or no answer

  Answer<std::vector<lease::Answer>> apply(lease::Batch batch) override {
    co_return on_apply ? on_apply(batch) : missing<std::vector<lease::Answer>>();
  }
  Answer<TickReport> tick() override { co_return on_tick ? on_tick() : missing<TickReport>(); }
  Answer<LeaseView> revoke(CameraId camera, TenantId) override {
    co_return on_show ? on_show(camera) : missing<LeaseView>();
  }
  Answer<std::vector<lease::LeaseRow>> release_all(lease::Owner owner, std::string will) override {
    co_return on_release_all ? on_release_all(owner, will) : missing<std::vector<lease::LeaseRow>>();
  }
  Answer<std::vector<lease::LeaseRow>> take_expired(int) override { co_return std::exchange(expired, {}); }
  Answer<std::vector<LeaseView>> list(LeaseFilter filter) override {
    co_return on_list ? on_list(filter) : missing<std::vector<LeaseView>>();
  }
  Answer<LeaseView> show(CameraId camera, TenantId) override {
    co_return on_show ? on_show(camera) : missing<LeaseView>();
  }
  Answer<BudgetAnswer> consume(SiteId, TenantId, std::optional<BudgetUse> use) override {
    co_return on_consume ? on_consume(use) : missing<BudgetAnswer>();
  }

  Answer<std::vector<Confirmation>> append(std::vector<OutgoingEvent> events, EventSpeaker speaker) override {
    co_return on_append ? on_append(events, speaker) : missing<std::vector<Confirmation>>();
  }
  Answer<Nothing> announce(std::vector<Announcement> announcements) override {
    if (announce_failures-- > 0) co_return Error{Errc::unavailable, "store_unavailable", "the store does not answer"};
    announced.push_back(std::move(announcements));
    co_return ok();
  }
  Answer<EventPage> read(std::int64_t after, int limit) override {
    UnderWay read(*this);
    if (read_takes) co_await read_takes();
    if (!up) co_return missing<EventPage>();
    EventPage page{{}, std::max(after, last_event.sequence), forgotten_to, last_event.epoch};
    for (const StoredEvent& event : stored) {
      if (event.sequence <= after || page.more) continue;
      page.events.push_back(event);
      page.more = static_cast<int>(page.events.size()) == std::min(limit, page_events_max);
      if (page.more) page.scanned_to = event.sequence;
    }
    co_return page;
  }
  Answer<EventPlace> newest() override { co_return up ? Result<EventPlace>(last_event) : missing<EventPlace>(); }
  Answer<std::int64_t> trim(EventRetention, int) override {
    co_return up ? Result<std::int64_t>(0) : missing<std::int64_t>();
  }

  Answer<Nothing> ping() override { co_return up ? ok() : missing<Nothing>(); }
  Answer<Tenant> add_tenant(Tenant tenant) override { co_return up ? Result<Tenant>(tenant) : missing<Tenant>(); }
  Answer<std::vector<Tenant>> list_tenants(TenantId, TenantId, int) override {
    co_return missing<std::vector<Tenant>>();
  }
  Answer<Nothing> remove_tenant(TenantId) override { co_return missing<Nothing>(); }
  Answer<Site> add_site(Site site) override { co_return up ? Result<Site>(site) : missing<Site>(); }
  Answer<std::vector<Site>> list_sites(TenantId, SiteId, int) override { co_return missing<std::vector<Site>>(); }
  Answer<Site> show_site(SiteId id, TenantId tenant) override {
    co_return up ? Result<Site>(Site{id, tenant, "", {}}) : missing<Site>();
  }
  Answer<int> count_cameras(SiteId, TenantId) override { co_return up ? Result<int>(0) : missing<int>(); }
  Answer<Nothing> remove_site(SiteId, TenantId) override { co_return missing<Nothing>(); }
  Answer<Site> set_budget(SiteId, TenantId, double, double, std::optional<double>) override {
    co_return missing<Site>();
  }
  Answer<CameraRecord> add_camera(camera::Config config) override {
    if (!up) co_return missing<CameraRecord>();
    cameras.push_back({std::move(config)});
    co_return cameras.back();
  }
  Answer<std::vector<CameraRecord>> list_cameras(CameraFilter filter) override {
    if (!up) co_return missing<std::vector<CameraRecord>>();
    std::vector<CameraRecord> found;
    for (const CameraRecord& record : cameras)
      if (record.config.camera > filter.after && static_cast<int>(found.size()) < filter.limit &&
          (filter.tenant.empty() || record.config.tenant == filter.tenant))
        found.push_back(record);
    co_return std::move(found);
  }
  Answer<CameraRecord> show_camera(CameraId id, TenantId tenant) override {
    CameraRecord* record = find(id, tenant);
    if (record != nullptr && !cameras_readable)
      co_return Error{Errc::unprocessable, std::string(kBadStoredConfig), "cannot be read"};
    co_return record != nullptr ? Result<CameraRecord>(*record) : missing<CameraRecord>();
  }
  Answer<CameraRecord> edit_camera(CameraId id, TenantId tenant, CameraEdit change) override {
    CameraRecord* record = find(id, tenant);
    if (record == nullptr) co_return missing<CameraRecord>();
    CO_TRY(config, change(*record));
    *record = edited(*record, config, record->updated_at);
    co_return *record;
  }
  Answer<Nothing> remove_camera(CameraId, TenantId) override { co_return up ? ok() : missing<Nothing>(); }
  Answer<int> count_crash(CameraId id, TenantId tenant) override {
    CameraRecord* record = find(id, tenant);
    co_return record != nullptr ? Result<int>(++record->crashes) : missing<int>();
  }
  Answer<Runner> register_runner(Runner runner, std::string will, TenantId) override {
    co_return on_register ? on_register(runner, will) : missing<Runner>();
  }
  Answer<RunnerOrders> heartbeat(RunnerId id, TenantId, boost::json::object body, int streams) override {
    co_return on_heartbeat ? on_heartbeat(id, body, streams) : missing<RunnerOrders>();
  }
  Answer<std::vector<Runner>> list_runners(TenantId, RunnerId, int) override {
    co_return runners.empty() ? missing<std::vector<Runner>>() : Result<std::vector<Runner>>(runners);
  }
  Answer<Runner> show_runner(RunnerId id, TenantId) override {
    for (const Runner& runner : runners)
      if (runner.id == id) co_return runner;
    co_return up ? Result<Runner>(Runner{.id = id}) : missing<Runner>();
  }
  Answer<Runner> change_runner(RunnerId id, TenantId tenant, RunnerChange change) override {
    if (!up) co_return missing<Runner>();
    Runner runner{.id = id, .tenant = tenant};
    runner.cordoned = change.cordoned.value_or(false);
    co_return runner;
  }
  Answer<Nothing> remove_runner(RunnerId, TenantId) override { co_return missing<Nothing>(); }

 private:
  template <class T>
  Result<T> missing() const {
    if (up) return Error{Errc::not_found, "not_found", "there is no such thing"};
    return Error{Errc::unavailable, "store_unavailable", "canary: user weir at db.example cannot connect"};
  }
  CameraRecord* find(const CameraId& id, const TenantId& tenant) {
    for (CameraRecord& record : cameras)
      if (up && record.config.camera == id && (tenant.empty() || record.config.tenant == tenant)) return &record;
    return nullptr;
  }
};

}  // namespace weir::control_plane
