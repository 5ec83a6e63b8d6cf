// Metered: a port of the store with a stopwatch around every call (weir_store_seconds{operation}).
//
// `Metered<Port>` times any call of any port under the name that it is given. The classes below say which method goes
// by which name; they only forward and measure, so that no handler can forget to measure. Loop thread only.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/net/metrics.hpp"
#include "weir/ports/catalog.hpp"
#include "weir/ports/event_log.hpp"
#include "weir/ports/keys.hpp"
#include "weir/ports/lease_store.hpp"

#include <map>

namespace weir::control_plane {

template <class Port>
class Metered : public Port {
 public:
  Metered(Port& inner, net::Metrics& metrics, Clock& clock) : inner_(inner), metrics_(metrics), clock_(clock) {}

 protected:
  // `operation` is a literal.
  template <class T, class... Parameters, class... Arguments>
  Async<T> timed(std::string_view operation, Async<T> (Port::*method)(Parameters...), Arguments&&... arguments) {
    return observed(operation, (inner_.*method)(std::forward<Arguments>(arguments)...));
  }

 private:
  template <class T>
  Async<T> observed(std::string_view operation, Async<T> work) {
    Instant start = clock_.now();
    Result<T> result = co_await std::move(work);
    histogram(operation).observe(seconds(clock_.now() - start));
    co_return result;
  }
  // Made when the operation is first used.
  net::Histogram& histogram(std::string_view operation) {
    net::Histogram*& known = seconds_[operation];
    if (known == nullptr)
      known = &metrics_.histogram("weir_store_seconds", "Time the store takes for one step.",
                                  net::Metrics::latency_buckets(), {{"operation", std::string(operation)}});
    return *known;
  }

  Port& inner_;
  net::Metrics& metrics_;
  Clock& clock_;
  std::map<std::string_view, net::Histogram*> seconds_;
};

class MeteredLeaseStore final : public Metered<LeaseStore> {
 public:
  using Metered::Metered;
  Async<std::vector<lease::Answer>> apply(lease::Batch batch) override {
    bool renews = batch.operation == lease::Operation::renew, acquires = batch.operation == lease::Operation::acquire;
    return timed(renews ? "renew" : acquires ? "acquire" : "release", &LeaseStore::apply, std::move(batch));
  }
  Async<TickReport> tick() override { return timed("tick", &LeaseStore::tick); }
  Async<LeaseView> revoke(CameraId camera, TenantId tenant) override {
    return timed("revoke", &LeaseStore::revoke, std::move(camera), std::move(tenant));
  }
  Async<std::vector<lease::LeaseRow>> release_all(lease::Owner owner, std::string will_sha256) override {
    return timed("release_all", &LeaseStore::release_all, std::move(owner), std::move(will_sha256));
  }
  Async<std::vector<lease::LeaseRow>> take_expired(int most) override {
    return timed("take_expired", &LeaseStore::take_expired, most);
  }
  Async<std::vector<LeaseView>> list(LeaseFilter filter) override {
    return timed("list_leases", &LeaseStore::list, std::move(filter));
  }
  Async<LeaseView> show(CameraId camera, TenantId tenant) override {
    return timed("show_lease", &LeaseStore::show, std::move(camera), std::move(tenant));
  }
  Async<LeaseView> note(LeaseWord word, TenantId tenant) override {
    return timed("note_lease", &LeaseStore::note, std::move(word), std::move(tenant));
  }
  Async<BudgetAnswer> consume(SiteId site, TenantId tenant, std::optional<BudgetUse> use) override {
    return timed("consume", &LeaseStore::consume, std::move(site), std::move(tenant), std::move(use));
  }
};

class MeteredEventLog final : public Metered<EventLog> {
 public:
  using Metered::Metered;
  Async<std::vector<Confirmation>> append(std::vector<event::Event> events, EventSpeaker speaker) override {
    return timed("append_events", &EventLog::append, std::move(events), std::move(speaker));
  }
  Async<Nothing> announce(std::vector<event::Event> announcements) override {
    return timed("announce_events", &EventLog::announce, std::move(announcements));
  }
  Async<EventPage> read(std::int64_t after, int limit) override {
    return timed("read_events", &EventLog::read, after, limit);
  }
  Async<EventPlace> newest() override { return timed("newest_event", &EventLog::newest); }
  Async<std::int64_t> trim(EventRetention retention, int most) override {
    return timed("trim_events", &EventLog::trim, retention, most);
  }
};

class MeteredKeys final : public Metered<Keys> {
 public:
  using Metered::Metered;
  Async<ApiKey> add_key(ApiKey key, std::string secret_sha256) override {
    return timed("add_key", &Keys::add_key, std::move(key), std::move(secret_sha256));
  }
  Async<std::vector<ApiKey>> list_keys(TenantId tenant, KeyId after, int limit) override {
    return timed("list_keys", &Keys::list_keys, std::move(tenant), std::move(after), limit);
  }
  Async<Nothing> revoke_key(KeyId id, TenantId tenant) override {
    return timed("revoke_key", &Keys::revoke_key, std::move(id), std::move(tenant));
  }
  Async<ApiKey> find_key(std::string secret_sha256) override {
    return timed("find_key", &Keys::find_key, std::move(secret_sha256));
  }
};

class MeteredHealth final : public Metered<StoreHealth> {
 public:
  using Metered::Metered;
  Async<Nothing> ping() override { return timed("ping", &StoreHealth::ping); }
};

class MeteredSites final : public Metered<Sites> {
 public:
  using Metered::Metered;
  Async<Tenant> add_tenant(Tenant tenant) override {
    return timed("add_tenant", &Sites::add_tenant, std::move(tenant));
  }
  Async<std::vector<Tenant>> list_tenants(TenantId only, TenantId after, int limit) override {
    return timed("list_tenants", &Sites::list_tenants, std::move(only), std::move(after), limit);
  }
  Async<Nothing> remove_tenant(TenantId id) override {
    return timed("remove_tenant", &Sites::remove_tenant, std::move(id));
  }
  Async<Site> add_site(Site site) override { return timed("add_site", &Sites::add_site, std::move(site)); }
  Async<std::vector<Site>> list_sites(TenantId tenant, SiteId after, int limit) override {
    return timed("list_sites", &Sites::list_sites, std::move(tenant), std::move(after), limit);
  }
  Async<Site> show_site(SiteId id, TenantId tenant) override {
    return timed("show_site", &Sites::show_site, std::move(id), std::move(tenant));
  }
  Async<int> count_cameras(SiteId id, TenantId tenant) override {
    return timed("count_cameras", &Sites::count_cameras, std::move(id), std::move(tenant));
  }
  Async<Nothing> remove_site(SiteId id, TenantId tenant) override {
    return timed("remove_site", &Sites::remove_site, std::move(id), std::move(tenant));
  }
  Async<Site> set_budget(SiteId id, TenantId tenant, double capacity, double refill_per_min,
                         std::optional<double> tokens) override {
    return timed("set_budget", &Sites::set_budget, std::move(id), std::move(tenant), capacity, refill_per_min, tokens);
  }
};

class MeteredCameras final : public Metered<Cameras> {
 public:
  using Metered::Metered;
  Async<CameraRecord> add_camera(camera::Config config) override {
    return timed("add_camera", &Cameras::add_camera, std::move(config));
  }
  Async<std::vector<CameraRecord>> list_cameras(CameraFilter filter) override {
    return timed("list_cameras", &Cameras::list_cameras, std::move(filter));
  }
  Async<CameraRecord> show_camera(CameraId id, TenantId tenant) override {
    return timed("show_camera", &Cameras::show_camera, std::move(id), std::move(tenant));
  }
  Async<CameraRecord> edit_camera(CameraId id, TenantId tenant, CameraEdit change) override {
    return timed("edit_camera", &Cameras::edit_camera, std::move(id), std::move(tenant), std::move(change));
  }
  Async<Nothing> remove_camera(CameraId id, TenantId tenant) override {
    return timed("remove_camera", &Cameras::remove_camera, std::move(id), std::move(tenant));
  }
  Async<int> count_crash(CameraId id, TenantId tenant) override {
    return timed("count_crash", &Cameras::count_crash, std::move(id), std::move(tenant));
  }
};

class MeteredStreams final : public Metered<Streams> {
 public:
  using Metered::Metered;
  Async<StreamRecord> put_stream(StreamRecord stream) override {
    return timed("put_stream", &Streams::put_stream, std::move(stream));
  }
  Async<Nothing> tell_stream(StreamTold told) override {
    return timed("tell_stream", &Streams::tell_stream, std::move(told));
  }
  Async<std::vector<StreamRecord>> list_streams(TenantId tenant, SubjectId after, int limit) override {
    return timed("list_streams", &Streams::list_streams, std::move(tenant), std::move(after), limit);
  }
  Async<StreamRecord> show_stream(SubjectId id, TenantId tenant) override {
    return timed("show_stream", &Streams::show_stream, std::move(id), std::move(tenant));
  }
  Async<Nothing> remove_stream(SubjectId id, TenantId tenant) override {
    return timed("remove_stream", &Streams::remove_stream, std::move(id), std::move(tenant));
  }
};

class MeteredModels final : public Metered<Models> {
 public:
  using Metered::Metered;
  Async<ModelRecord> put_model(ModelRecord model, Put how) override {
    return timed("put_model", &Models::put_model, std::move(model), how);
  }
  Async<std::vector<ModelRecord>> list_models(TenantId tenant, ModelId after, int limit) override {
    return timed("list_models", &Models::list_models, std::move(tenant), after, limit);
  }
  Async<ModelRecord> show_model(ModelId id, TenantId tenant) override {
    return timed("show_model", &Models::show_model, id, std::move(tenant));
  }
  Async<ModelRecord> set_model_file(ModelId id, TenantId tenant, ModelFile file) override {
    return timed("set_model_file", &Models::set_model_file, id, std::move(tenant), std::move(file));
  }
  Async<Nothing> remove_model(ModelId id, TenantId tenant) override {
    return timed("remove_model", &Models::remove_model, id, std::move(tenant));
  }
};

class MeteredDisplays final : public Metered<Displays> {
 public:
  using Metered::Metered;
  Async<PlaylistRecord> put_playlist(PlaylistRecord playlist, Put how) override {
    return timed("put_playlist", &Displays::put_playlist, std::move(playlist), how);
  }
  Async<std::vector<PlaylistRecord>> list_playlists(TenantId tenant, PlaylistId after, int limit) override {
    return timed("list_playlists", &Displays::list_playlists, std::move(tenant), std::move(after), limit);
  }
  Async<PlaylistRecord> show_playlist(PlaylistId id, TenantId tenant) override {
    return timed("show_playlist", &Displays::show_playlist, std::move(id), std::move(tenant));
  }
  Async<Nothing> remove_playlist(PlaylistId id, TenantId tenant) override {
    return timed("remove_playlist", &Displays::remove_playlist, std::move(id), std::move(tenant));
  }
  Async<DisplayRecord> put_display(DisplayRecord display, Put how) override {
    return timed("put_display", &Displays::put_display, std::move(display), how);
  }
  Async<std::vector<DisplayRecord>> list_displays(TenantId tenant, DisplayId after, int limit) override {
    return timed("list_displays", &Displays::list_displays, std::move(tenant), std::move(after), limit);
  }
  Async<DisplayRecord> show_display(DisplayId id, TenantId tenant) override {
    return timed("show_display", &Displays::show_display, std::move(id), std::move(tenant));
  }
  Async<Nothing> remove_display(DisplayId id, TenantId tenant) override {
    return timed("remove_display", &Displays::remove_display, std::move(id), std::move(tenant));
  }
  Async<SubscriptionRecord> put_subscription(SubscriptionRecord subscription) override {
    return timed("put_subscription", &Displays::put_subscription, std::move(subscription));
  }
  Async<std::vector<SubscriptionRecord>> list_subscriptions(TenantId tenant, SubscriptionId after, int limit) override {
    return timed("list_subscriptions", &Displays::list_subscriptions, std::move(tenant), std::move(after), limit);
  }
  Async<SubscriptionRecord> remove_subscription(SubscriptionId id, TenantId tenant) override {
    return timed("remove_subscription", &Displays::remove_subscription, std::move(id), std::move(tenant));
  }
  Async<std::vector<DesiredSubscription>> list_desired(ClusterId cluster, TenantId tenant, SubscriptionId after,
                                                       int limit) override {
    return timed("list_desired", &Displays::list_desired, std::move(cluster), std::move(tenant), std::move(after),
                 limit);
  }
};

class MeteredRunners final : public Metered<Runners> {
 public:
  using Metered::Metered;
  Async<Runner> register_runner(Runner runner, std::string will_sha256, TenantId tenant) override {
    return timed("register_runner", &Runners::register_runner, std::move(runner), std::move(will_sha256),
                 std::move(tenant));
  }
  Async<RunnerOrders> heartbeat(RunnerId id, TenantId tenant, boost::json::object body, int streams_owned) override {
    return timed("heartbeat", &Runners::heartbeat, std::move(id), std::move(tenant), std::move(body), streams_owned);
  }
  Async<std::vector<Runner>> list_runners(TenantId tenant, RunnerId after, int limit) override {
    return timed("list_runners", &Runners::list_runners, std::move(tenant), std::move(after), limit);
  }
  Async<Runner> show_runner(RunnerId id, TenantId tenant) override {
    return timed("show_runner", &Runners::show_runner, std::move(id), std::move(tenant));
  }
  Async<Runner> change_runner(RunnerId id, TenantId tenant, RunnerChange change) override {
    return timed("change_runner", &Runners::change_runner, std::move(id), std::move(tenant), std::move(change));
  }
  Async<Nothing> remove_runner(RunnerId id, TenantId tenant) override {
    return timed("remove_runner", &Runners::remove_runner, std::move(id), std::move(tenant));
  }
};

}  // namespace weir::control_plane
