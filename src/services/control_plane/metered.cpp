#include "weir/control_plane/metered.hpp"

namespace weir::control_plane {

using boost::asio::awaitable;

net::Histogram& Stopwatch::histogram() {
  if (seconds_ == nullptr)
    seconds_ = &metrics_.histogram("weir_store_seconds", "Time the store takes for one step.",
                                   net::Metrics::latency_buckets(), {{"operation", operation_}});
  return *seconds_;
}

// ---- leases ----

MeteredLeaseStore::MeteredLeaseStore(LeaseStore& inner, net::Metrics& metrics, Clock& clock)
    : inner_(inner),
      acquire_(metrics, clock, "acquire"),
      renew_(metrics, clock, "renew"),
      release_(metrics, clock, "release"),
      tick_(metrics, clock, "tick"),
      revoke_(metrics, clock, "revoke"),
      release_all_(metrics, clock, "release_all"),
      take_expired_(metrics, clock, "take_expired"),
      list_(metrics, clock, "list_leases"),
      show_(metrics, clock, "show_lease"),
      consume_(metrics, clock, "consume") {}

awaitable<Result<std::vector<lease::Answer>>> MeteredLeaseStore::apply(lease::Batch batch) {
  Stopwatch& watch = batch.operation == lease::Operation::renew     ? renew_
                     : batch.operation == lease::Operation::acquire ? acquire_
                                                                    : release_;
  return watch.time(inner_.apply(std::move(batch)));
}
awaitable<Result<TickReport>> MeteredLeaseStore::tick() { return tick_.time(inner_.tick()); }
awaitable<Result<LeaseView>> MeteredLeaseStore::revoke(CameraId camera, TenantId tenant) {
  return revoke_.time(inner_.revoke(std::move(camera), std::move(tenant)));
}
awaitable<Result<std::vector<lease::LeaseRow>>> MeteredLeaseStore::release_all(lease::Owner owner,
                                                                               std::string will_sha256) {
  return release_all_.time(inner_.release_all(std::move(owner), std::move(will_sha256)));
}
awaitable<Result<std::vector<lease::LeaseRow>>> MeteredLeaseStore::take_expired(int most) {
  return take_expired_.time(inner_.take_expired(most));
}
awaitable<Result<std::vector<LeaseView>>> MeteredLeaseStore::list(LeaseFilter filter) {
  return list_.time(inner_.list(std::move(filter)));
}
awaitable<Result<LeaseView>> MeteredLeaseStore::show(CameraId camera, TenantId tenant) {
  return show_.time(inner_.show(std::move(camera), std::move(tenant)));
}
awaitable<Result<BudgetAnswer>> MeteredLeaseStore::consume(SiteId site, TenantId tenant, std::optional<BudgetUse> use) {
  return consume_.time(inner_.consume(std::move(site), std::move(tenant), std::move(use)));
}

// ---- events ----

MeteredEventLog::MeteredEventLog(EventLog& inner, net::Metrics& metrics, Clock& clock)
    : inner_(inner),
      append_(metrics, clock, "append_events"),
      announce_(metrics, clock, "announce_events"),
      read_(metrics, clock, "read_events"),
      newest_(metrics, clock, "newest_event"),
      trim_(metrics, clock, "trim_events") {}

awaitable<Result<std::vector<Confirmation>>> MeteredEventLog::append(std::vector<OutgoingEvent> events,
                                                                     EventSpeaker speaker) {
  return append_.time(inner_.append(std::move(events), std::move(speaker)));
}
awaitable<Result<Nothing>> MeteredEventLog::announce(std::vector<Announcement> announcements) {
  return announce_.time(inner_.announce(std::move(announcements)));
}
awaitable<Result<EventPage>> MeteredEventLog::read(std::int64_t after, int limit) {
  return read_.time(inner_.read(after, limit));
}
awaitable<Result<EventPlace>> MeteredEventLog::newest() { return newest_.time(inner_.newest()); }
awaitable<Result<std::int64_t>> MeteredEventLog::trim(EventRetention retention, int most) {
  return trim_.time(inner_.trim(retention, most));
}

// ---- keys ----

MeteredKeys::MeteredKeys(Keys& inner, net::Metrics& metrics, Clock& clock)
    : inner_(inner),
      add_key_(metrics, clock, "add_key"),
      list_keys_(metrics, clock, "list_keys"),
      revoke_key_(metrics, clock, "revoke_key"),
      find_key_(metrics, clock, "find_key") {}

Keys::Async<ApiKey> MeteredKeys::add_key(ApiKey key, std::string secret_sha256) {
  return add_key_.time(inner_.add_key(std::move(key), std::move(secret_sha256)));
}
Keys::Async<std::vector<ApiKey>> MeteredKeys::list_keys(TenantId tenant, KeyId after, int limit) {
  return list_keys_.time(inner_.list_keys(std::move(tenant), std::move(after), limit));
}
Keys::Async<Nothing> MeteredKeys::revoke_key(KeyId id, TenantId tenant) {
  return revoke_key_.time(inner_.revoke_key(std::move(id), std::move(tenant)));
}
Keys::Async<ApiKey> MeteredKeys::find_key(std::string secret_sha256) {
  return find_key_.time(inner_.find_key(std::move(secret_sha256)));
}

// ---- catalog ----

MeteredCatalog::MeteredCatalog(Catalog& inner, net::Metrics& metrics, Clock& clock)
    : inner_(inner),
      ping_(metrics, clock, "ping"),
      add_tenant_(metrics, clock, "add_tenant"),
      list_tenants_(metrics, clock, "list_tenants"),
      remove_tenant_(metrics, clock, "remove_tenant"),
      add_site_(metrics, clock, "add_site"),
      list_sites_(metrics, clock, "list_sites"),
      show_site_(metrics, clock, "show_site"),
      count_cameras_(metrics, clock, "count_cameras"),
      remove_site_(metrics, clock, "remove_site"),
      set_budget_(metrics, clock, "set_budget"),
      add_camera_(metrics, clock, "add_camera"),
      list_cameras_(metrics, clock, "list_cameras"),
      show_camera_(metrics, clock, "show_camera"),
      edit_camera_(metrics, clock, "edit_camera"),
      remove_camera_(metrics, clock, "remove_camera"),
      count_crash_(metrics, clock, "count_crash"),
      register_runner_(metrics, clock, "register_runner"),
      heartbeat_(metrics, clock, "heartbeat"),
      list_runners_(metrics, clock, "list_runners"),
      show_runner_(metrics, clock, "show_runner"),
      change_runner_(metrics, clock, "change_runner"),
      remove_runner_(metrics, clock, "remove_runner") {}

Catalog::Async<Nothing> MeteredCatalog::ping() { return ping_.time(inner_.ping()); }
Catalog::Async<Tenant> MeteredCatalog::add_tenant(Tenant tenant) {
  return add_tenant_.time(inner_.add_tenant(std::move(tenant)));
}
Catalog::Async<std::vector<Tenant>> MeteredCatalog::list_tenants(TenantId only, TenantId after, int limit) {
  return list_tenants_.time(inner_.list_tenants(std::move(only), std::move(after), limit));
}
Catalog::Async<Nothing> MeteredCatalog::remove_tenant(TenantId id) {
  return remove_tenant_.time(inner_.remove_tenant(std::move(id)));
}
Catalog::Async<Site> MeteredCatalog::add_site(Site site) { return add_site_.time(inner_.add_site(std::move(site))); }
Catalog::Async<std::vector<Site>> MeteredCatalog::list_sites(TenantId tenant, SiteId after, int limit) {
  return list_sites_.time(inner_.list_sites(std::move(tenant), std::move(after), limit));
}
Catalog::Async<Site> MeteredCatalog::show_site(SiteId id, TenantId tenant) {
  return show_site_.time(inner_.show_site(std::move(id), std::move(tenant)));
}
Catalog::Async<int> MeteredCatalog::count_cameras(SiteId id, TenantId tenant) {
  return count_cameras_.time(inner_.count_cameras(std::move(id), std::move(tenant)));
}
Catalog::Async<Nothing> MeteredCatalog::remove_site(SiteId id, TenantId tenant) {
  return remove_site_.time(inner_.remove_site(std::move(id), std::move(tenant)));
}
Catalog::Async<Site> MeteredCatalog::set_budget(SiteId id, TenantId tenant, double capacity, double refill_per_min,
                                                std::optional<double> tokens) {
  return set_budget_.time(inner_.set_budget(std::move(id), std::move(tenant), capacity, refill_per_min, tokens));
}
Catalog::Async<CameraRecord> MeteredCatalog::add_camera(camera::Config config) {
  return add_camera_.time(inner_.add_camera(std::move(config)));
}
Catalog::Async<std::vector<CameraRecord>> MeteredCatalog::list_cameras(CameraFilter filter) {
  return list_cameras_.time(inner_.list_cameras(std::move(filter)));
}
Catalog::Async<CameraRecord> MeteredCatalog::show_camera(CameraId id, TenantId tenant) {
  return show_camera_.time(inner_.show_camera(std::move(id), std::move(tenant)));
}
Catalog::Async<CameraRecord> MeteredCatalog::edit_camera(CameraId id, TenantId tenant, CameraEdit change) {
  return edit_camera_.time(inner_.edit_camera(std::move(id), std::move(tenant), std::move(change)));
}
Catalog::Async<Nothing> MeteredCatalog::remove_camera(CameraId id, TenantId tenant) {
  return remove_camera_.time(inner_.remove_camera(std::move(id), std::move(tenant)));
}
Catalog::Async<int> MeteredCatalog::count_crash(CameraId id, TenantId tenant) {
  return count_crash_.time(inner_.count_crash(std::move(id), std::move(tenant)));
}
Catalog::Async<Runner> MeteredCatalog::register_runner(Runner runner, std::string will_sha256, TenantId tenant) {
  return register_runner_.time(inner_.register_runner(std::move(runner), std::move(will_sha256), std::move(tenant)));
}
Catalog::Async<RunnerOrders> MeteredCatalog::heartbeat(RunnerId id, TenantId tenant, boost::json::object body,
                                                       int streams_owned) {
  return heartbeat_.time(inner_.heartbeat(std::move(id), std::move(tenant), std::move(body), streams_owned));
}
Catalog::Async<std::vector<Runner>> MeteredCatalog::list_runners(TenantId tenant, RunnerId after, int limit) {
  return list_runners_.time(inner_.list_runners(std::move(tenant), std::move(after), limit));
}
Catalog::Async<Runner> MeteredCatalog::show_runner(RunnerId id, TenantId tenant) {
  return show_runner_.time(inner_.show_runner(std::move(id), std::move(tenant)));
}
Catalog::Async<Runner> MeteredCatalog::change_runner(RunnerId id, TenantId tenant, RunnerChange change) {
  return change_runner_.time(inner_.change_runner(std::move(id), std::move(tenant), std::move(change)));
}
Catalog::Async<Nothing> MeteredCatalog::remove_runner(RunnerId id, TenantId tenant) {
  return remove_runner_.time(inner_.remove_runner(std::move(id), std::move(tenant)));
}

}  // namespace weir::control_plane
