// ScriptedStore: a store for tests of the control plane that answers what the test told it to, and nothing else.
// The rules of a real store are tested in the contract suite; here only what the routes make of its answers matters.
// The test's thread only.
#pragma once

#include "weir/ports/catalog.hpp"
#include "weir/ports/event_log.hpp"
#include "weir/ports/keys.hpp"
#include "weir/ports/lease_store.hpp"

#include <climits>
#include <functional>
#include <map>

namespace weir::control_plane {

// What all its ports share.
struct Scripted {
  bool up = false;  // what is not scripted: nothing found, or no answer

  template <class T>
  Result<T> missing() const {
    if (up) return Error{Errc::not_found, "not_found", "there is no such thing"};
    return Error{Errc::unavailable, "store_unavailable", "canary: user weir at db.example cannot connect"};
  }
};

class ScriptedLeases : public LeaseStore, public virtual Scripted {
 public:
  std::function<Result<std::vector<lease::Answer>>(const lease::Batch&)> on_apply;
  std::function<Result<TickReport>()> on_tick;
  std::function<Result<std::vector<lease::LeaseRow>>(const lease::Owner&, const std::string&)> on_release_all;
  std::vector<lease::LeaseRow> expired;  // given out once
  std::function<Result<std::vector<LeaseView>>(const LeaseFilter&)> on_list;
  std::function<Result<LeaseView>(const CameraId&)> on_show;
  std::function<Result<LeaseView>(const LeaseWord&)> on_note;
  std::function<Result<BudgetAnswer>(const std::optional<BudgetUse>&)> on_consume;

  Async<std::vector<lease::Answer>> apply(lease::Batch batch) override {
    co_return on_apply ? on_apply(batch) : missing<std::vector<lease::Answer>>();
  }
  Async<TickReport> tick() override { co_return on_tick ? on_tick() : missing<TickReport>(); }
  Async<LeaseView> revoke(CameraId camera, TenantId) override {
    co_return on_show ? on_show(camera) : missing<LeaseView>();
  }
  Async<std::vector<lease::LeaseRow>> release_all(lease::Owner owner, std::string will) override {
    co_return on_release_all ? on_release_all(owner, will) : missing<std::vector<lease::LeaseRow>>();
  }
  Async<std::vector<lease::LeaseRow>> take_expired(int) override { co_return std::exchange(expired, {}); }
  Async<std::vector<LeaseView>> list(LeaseFilter filter) override {
    co_return on_list ? on_list(filter) : missing<std::vector<LeaseView>>();
  }
  Async<LeaseView> show(CameraId camera, TenantId) override {
    co_return on_show ? on_show(camera) : missing<LeaseView>();
  }
  Async<LeaseView> note(LeaseWord word, TenantId) override {
    co_return on_note ? on_note(word) : missing<LeaseView>();
  }
  Async<BudgetAnswer> consume(SiteId, TenantId, std::optional<BudgetUse> use) override {
    co_return on_consume ? on_consume(use) : missing<BudgetAnswer>();
  }
};

class ScriptedEvents : public EventLog, public virtual Scripted {
 public:
  struct UnderWay {
    explicit UnderWay(ScriptedEvents& at) : log(at) { log.reads_most = std::max(log.reads_most, ++log.reads); }
    ~UnderWay() { --log.reads; }
    ScriptedEvents& log;
  };

  std::function<Result<std::vector<Confirmation>>(const std::vector<event::Event>&, const EventSpeaker&)> on_append;
  std::vector<StoredEvent> stored;                   // what the log holds
  std::vector<std::vector<event::Event>> announced;  // by the step
  int announce_failures = 0;                         // steps that fail before one succeeds
  EventPlace last_event = {1, 0};
  std::int64_t forgotten_to = 0;
  std::function<boost::asio::awaitable<void>()> read_takes;  // the time of a read of events
  int reads = 0, reads_most = 0;                             // at once
  int page_events_max = INT_MAX;                             // a page ends there, whatever was asked for

  Async<std::vector<Confirmation>> append(std::vector<event::Event> events, EventSpeaker speaker) override {
    co_return on_append ? on_append(events, speaker) : missing<std::vector<Confirmation>>();
  }
  Async<Nothing> announce(std::vector<event::Event> announcements) override {
    if (announce_failures-- > 0) co_return Error{Errc::unavailable, "store_unavailable", "the store does not answer"};
    announced.push_back(std::move(announcements));
    co_return ok();
  }
  Async<EventPage> read(std::int64_t after, int limit) override {
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
  Async<EventPlace> newest() override { co_return up ? Result<EventPlace>(last_event) : missing<EventPlace>(); }
  Async<std::int64_t> trim(EventRetention, int) override {
    co_return up ? Result<std::int64_t>(0) : missing<std::int64_t>();
  }
};

class ScriptedCatalog : public Catalog, public virtual Scripted {
 public:
  std::function<Result<Runner>(const Runner&, const std::string&)> on_register;
  std::function<Result<RunnerOrders>(const RunnerId&, const boost::json::object&, int)> on_heartbeat;
  std::vector<CameraRecord> cameras;  // in the order of their ids
  bool cameras_readable = true;
  std::vector<Runner> runners;
  std::map<SubjectId, StreamRecord> streams;
  std::function<Result<Nothing>(const StreamTold&)> on_tell_stream;

  Async<Nothing> ping() override { co_return up ? ok() : missing<Nothing>(); }
  Async<Tenant> add_tenant(Tenant tenant) override { co_return up ? Result<Tenant>(tenant) : missing<Tenant>(); }
  Async<std::vector<Tenant>> list_tenants(TenantId, TenantId, int) override {
    co_return missing<std::vector<Tenant>>();
  }
  Async<Nothing> remove_tenant(TenantId) override { co_return missing<Nothing>(); }
  Async<Site> add_site(Site site) override { co_return up ? Result<Site>(site) : missing<Site>(); }
  Async<std::vector<Site>> list_sites(TenantId, SiteId, int) override { co_return missing<std::vector<Site>>(); }
  Async<Site> show_site(SiteId id, TenantId tenant) override {
    co_return up ? Result<Site>(Site{id, tenant, "", {}}) : missing<Site>();
  }
  Async<int> count_cameras(SiteId, TenantId) override { co_return up ? Result<int>(0) : missing<int>(); }
  Async<Nothing> remove_site(SiteId, TenantId) override { co_return missing<Nothing>(); }
  Async<Site> set_budget(SiteId, TenantId, double, double, std::optional<double>) override {
    co_return missing<Site>();
  }
  Async<CameraRecord> add_camera(camera::Config config) override {
    if (!up) co_return missing<CameraRecord>();
    cameras.push_back({std::move(config)});
    co_return cameras.back();
  }
  Async<std::vector<CameraRecord>> list_cameras(CameraFilter filter) override {
    if (!up) co_return missing<std::vector<CameraRecord>>();
    std::vector<CameraRecord> found;
    for (const CameraRecord& record : cameras)
      if (record.config.camera > filter.after && static_cast<int>(found.size()) < filter.limit &&
          (filter.tenant.empty() || record.config.tenant == filter.tenant))
        found.push_back(record);
    co_return std::move(found);
  }
  Async<CameraRecord> show_camera(CameraId id, TenantId tenant) override {
    CameraRecord* record = find(id, tenant);
    if (record != nullptr && !cameras_readable)
      co_return Error{Errc::unprocessable, std::string(kBadStoredConfig), "cannot be read"};
    co_return record != nullptr ? Result<CameraRecord>(*record) : missing<CameraRecord>();
  }
  Async<CameraRecord> edit_camera(CameraId id, TenantId tenant, CameraEdit change) override {
    CameraRecord* record = find(id, tenant);
    if (record == nullptr) co_return missing<CameraRecord>();
    CO_TRY(config, change(*record));
    *record = edited(*record, config, record->updated_at);
    co_return *record;
  }
  Async<Nothing> remove_camera(CameraId, TenantId) override { co_return up ? ok() : missing<Nothing>(); }
  Async<int> count_crash(CameraId id, TenantId tenant) override {
    CameraRecord* record = find(id, tenant);
    co_return record != nullptr ? Result<int>(++record->crashes) : missing<int>();
  }
  Async<Runner> register_runner(Runner runner, std::string will, TenantId) override {
    co_return on_register ? on_register(runner, will) : missing<Runner>();
  }
  Async<RunnerOrders> heartbeat(RunnerId id, TenantId, boost::json::object body, int owned) override {
    co_return on_heartbeat ? on_heartbeat(id, body, owned) : missing<RunnerOrders>();
  }
  Async<std::vector<Runner>> list_runners(TenantId, RunnerId, int) override {
    co_return runners.empty() ? missing<std::vector<Runner>>() : Result<std::vector<Runner>>(runners);
  }
  Async<Runner> show_runner(RunnerId id, TenantId) override {
    for (const Runner& runner : runners)
      if (runner.id == id) co_return runner;
    co_return up ? Result<Runner>(Runner{.id = id}) : missing<Runner>();
  }
  Async<Runner> change_runner(RunnerId id, TenantId tenant, RunnerChange change) override {
    if (!up) co_return missing<Runner>();
    Runner runner{.id = id, .tenant = tenant};
    runner.cordoned = change.cordoned.value_or(false);
    co_return runner;
  }
  Async<Nothing> remove_runner(RunnerId, TenantId) override { co_return missing<Nothing>(); }
  Async<StreamRecord> put_stream(StreamRecord stream) override {
    if (!up) co_return missing<StreamRecord>();
    StreamRecord& kept = streams[stream.id];
    if (!kept.id.empty() && kept.tenant != stream.tenant) co_return exists_already("stream", "stream_id");
    kept.id = stream.id;
    kept.tenant = stream.tenant;
    kept.site = stream.site;
    kept.wishes = stream.wishes;
    co_return stream;
  }
  Async<Nothing> tell_stream(StreamTold told) override {
    co_return on_tell_stream ? on_tell_stream(told) : missing<Nothing>();
  }
  Async<std::vector<StreamRecord>> list_streams(TenantId tenant, SubjectId after, int limit) override {
    if (!up) co_return missing<std::vector<StreamRecord>>();
    std::vector<StreamRecord> found;
    for (const auto& [id, stream] : streams)
      if (id > after && static_cast<int>(found.size()) < limit && (tenant.empty() || stream.tenant == tenant))
        found.push_back(stream);
    co_return std::move(found);
  }
  Async<StreamRecord> show_stream(SubjectId id, TenantId tenant) override {
    if (!up) co_return missing<StreamRecord>();
    auto at = streams.find(id);
    bool seen = at != streams.end() && (tenant.empty() || at->second.tenant == tenant);
    co_return seen ? Result<StreamRecord>(at->second) : no_such("stream", "stream_id");
  }
  Async<Nothing> remove_stream(SubjectId id, TenantId) override {
    if (!streams[id].holder.empty()) co_return not_empty("stream", "a holder");
    streams.erase(id);
    co_return ok();
  }
  // What clusters look at is tested over the fake.
  Async<ModelRecord> put_model(ModelRecord, Put) override { co_return missing<ModelRecord>(); }
  Async<ModelRecord> set_model_file(ModelId, TenantId, ModelFile) override { co_return missing<ModelRecord>(); }
  Async<std::vector<ModelRecord>> list_models(TenantId, ModelId, int) override {
    if (up) co_return std::vector<ModelRecord>();
    co_return missing<std::vector<ModelRecord>>();
  }
  Async<ModelRecord> show_model(ModelId, TenantId) override { co_return missing<ModelRecord>(); }
  Async<Nothing> remove_model(ModelId, TenantId) override { co_return missing<Nothing>(); }
  Async<PlaylistRecord> put_playlist(PlaylistRecord, Put) override { co_return missing<PlaylistRecord>(); }
  Async<std::vector<PlaylistRecord>> list_playlists(TenantId, PlaylistId, int) override {
    co_return missing<std::vector<PlaylistRecord>>();
  }
  Async<PlaylistRecord> show_playlist(PlaylistId, TenantId) override { co_return missing<PlaylistRecord>(); }
  Async<Nothing> remove_playlist(PlaylistId, TenantId) override { co_return missing<Nothing>(); }
  Async<DisplayRecord> put_display(DisplayRecord, Put) override { co_return missing<DisplayRecord>(); }
  Async<std::vector<DisplayRecord>> list_displays(TenantId, DisplayId, int) override {
    co_return missing<std::vector<DisplayRecord>>();
  }
  Async<DisplayRecord> show_display(DisplayId, TenantId) override { co_return missing<DisplayRecord>(); }
  Async<Nothing> remove_display(DisplayId, TenantId) override { co_return missing<Nothing>(); }
  Async<SubscriptionRecord> put_subscription(SubscriptionRecord) override { co_return missing<SubscriptionRecord>(); }
  Async<std::vector<SubscriptionRecord>> list_subscriptions(TenantId, SubscriptionId, int) override {
    co_return missing<std::vector<SubscriptionRecord>>();
  }
  Async<SubscriptionRecord> remove_subscription(SubscriptionId, TenantId) override {
    co_return missing<SubscriptionRecord>();
  }
  Async<std::vector<DesiredSubscription>> list_desired(ClusterId, TenantId, SubscriptionId, int) override {
    co_return missing<std::vector<DesiredSubscription>>();
  }

 private:
  CameraRecord* find(const CameraId& id, const TenantId& tenant) {
    for (CameraRecord& record : cameras)
      if (up && record.config.camera == id && (tenant.empty() || record.config.tenant == tenant)) return &record;
    return nullptr;
  }
};

class ScriptedKeys : public Keys, public virtual Scripted {
 public:
  std::map<std::string, ApiKey> keys_by_hash;

  Async<ApiKey> add_key(ApiKey key, std::string secret_sha256) override {
    if (!up) co_return missing<ApiKey>();
    co_return keys_by_hash[secret_sha256] = key;
  }
  Async<std::vector<ApiKey>> list_keys(TenantId tenant, KeyId after, int limit) override {
    if (!up) co_return missing<std::vector<ApiKey>>();
    std::map<KeyId, ApiKey> sorted;
    for (const auto& [hash, key] : keys_by_hash)
      if (key.id > after && sees(tenant, key)) sorted[key.id] = key;
    std::vector<ApiKey> found;
    for (const auto& [id, key] : sorted)
      if (static_cast<int>(found.size()) < limit) found.push_back(key);
    co_return std::move(found);
  }
  Async<Nothing> revoke_key(KeyId id, TenantId tenant) override {
    if (!up) co_return missing<Nothing>();
    auto gone = std::erase_if(keys_by_hash, [&](const auto& e) { return e.second.id == id && sees(tenant, e.second); });
    if (gone == 0) co_return no_such("key", "key_id");
    co_return ok();
  }
  Async<ApiKey> find_key(std::string secret_sha256) override {
    if (!up) co_return missing<ApiKey>();
    auto at = keys_by_hash.find(secret_sha256);
    if (at == keys_by_hash.end()) co_return no_such("key", "key_id");
    co_return at->second;
  }

 private:
  static bool sees(const TenantId& tenant, const ApiKey& key) { return tenant.empty() || key.tenant == tenant; }
};

class ScriptedStore final : public ScriptedLeases,
                            public ScriptedEvents,
                            public ScriptedCatalog,
                            public ScriptedKeys {};

}  // namespace weir::control_plane
