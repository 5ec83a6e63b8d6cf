#include "answers.hpp"
#include "lease_bodies.hpp"
#include "page.hpp"
#include "place.hpp"
#include "plane.hpp"
#include "request.hpp"

#include "weir/base/log.hpp"
#include "weir/ports/store_errors.hpp"

namespace weir::control_plane {

using net::Method;

struct TenantBody {
  TenantId id;
  std::string name;
};
struct SiteBody {
  SiteId id;
  TenantId tenant;
  std::string name;
  std::optional<double> capacity;
  std::optional<double> refill_rate;
};
struct BudgetBody {
  double capacity = 0;
  double refill_rate = 0;
  std::optional<double> tokens;
};
struct ConsumeBody {
  CameraId camera;
  std::optional<std::int64_t> grant_version;
};

namespace {
const auto kCapacity = json::range(1.0, 10'000.0);
const auto kRefillRate = json::range(0.0, 100'000.0);
}  // namespace

template <class V>
void fields(V& v, TenantBody& b) {
  v.required("tenant_id", b.id);
  v.optional("name", b.name, name_problem);
}
template <class V>
void fields(V& v, SiteBody& b) {
  v.required("site_id", b.id);
  v.optional("tenant_id", b.tenant);
  v.optional("name", b.name, name_problem);
  v.optional("capacity", b.capacity, kCapacity);
  v.optional("refill_rate", b.refill_rate, kRefillRate);
}
template <class V>
void fields(V& v, BudgetBody& b) {
  v.required("capacity", b.capacity, kCapacity);
  v.required("refill_rate", b.refill_rate, kRefillRate);
  v.optional("tokens", b.tokens, json::range(0.0, 10'000.0));
}
template <class V>
void fields(V& v, ConsumeBody& b) {
  v.optional("camera_uuid", b.camera);
  v.optional("grant_version", b.grant_version, json::range<std::int64_t>(1, kVersionMax));
}

namespace {

// ---- tenants ----

Reply add_tenant(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(all, sees_all(caller));
  CO_TRY(body, body_as<TenantBody>(request, json::Unknown::reject));
  Tenant tenant{body.id, body.name};
  CO_TRY(added, co_await plane.sites.add_tenant(std::move(tenant)));
  log::info("tenant.created").with("tenant_id", added.id).with("request_id", request.request_id);
  co_return net::Response::json(write_tenant(added), 201);
}

Reply list_tenants(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(page, read_page(request));
  TenantId only = caller.tenant;
  CO_TRY(found, co_await plane.sites.list_tenants(std::move(only), TenantId::trusted(page.after), page.ask()));
  co_return net::Response::json(listed(
      found, page, [](const Tenant& tenant) { return tenant.id.str(); }, write_tenant));
}

Reply show_tenant(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(id, path_id<TenantId>(request));
  if (!caller.tenant.empty() && caller.tenant != id) co_return no_such("tenant", "tenant_id");
  CO_TRY(found, co_await plane.sites.list_tenants(std::move(id), TenantId(), 1));
  if (found.empty()) co_return no_such("tenant", "tenant_id");
  co_return net::Response::json(write_tenant(found[0]));
}

Reply remove_tenant(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(all, sees_all(caller));
  CO_TRY(id, path_id<TenantId>(request));
  TenantId doomed = id;
  CO_TRY(gone, co_await plane.sites.remove_tenant(std::move(doomed)));
  log::info("tenant.deleted").with("tenant_id", id).with("request_id", request.request_id);
  co_return net::Response::json(json::object{{"tenant_id", id.str()}, {"deleted", true}});
}

// ---- sites ----

Reply add_site(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(body, body_as<SiteBody>(request, json::Unknown::reject));
  CO_TRY(tenant, tenant_for(caller, body.tenant));
  if (tenant.empty()) co_return bad_field("tenant_id", "is required");
  Site site = new_site(plane.settings, body.id, tenant);
  site.name = body.name;
  site.budget.capacity = site.budget.tokens = body.capacity.value_or(site.budget.capacity);
  site.budget.refill_per_min = body.refill_rate.value_or(site.budget.refill_per_min);
  CO_TRY(added, co_await plane.sites.add_site(std::move(site)));
  log::info("site.created")
      .with("site_id", added.id)
      .with("tenant_id", added.tenant)
      .with("request_id", request.request_id);
  co_return net::Response::json(write_site(added, plane.clock.wall()), 201);
}

Reply list_sites(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(page, read_page(request));
  CO_TRY(wanted, query_id<TenantId>(request));
  std::vector<Site> found;
  // Another tenant's list is as empty as that of a tenant that does not exist.
  if (auto tenant = tenant_for(caller, wanted)) {
    TenantId in = *tenant;
    CO_TRY(sites, co_await plane.sites.list_sites(std::move(in), SiteId::trusted(page.after), page.ask()));
    found = std::move(sites);
  }
  co_return net::Response::json(listed(
      found, page, [](const Site& site) { return site.id.str(); },
      [&](const Site& site) { return write_site(site, plane.clock.wall()); }));
}

Reply show_site(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(id, path_id<SiteId>(request));
  TenantId tenant = caller.tenant;
  CO_TRY(site, co_await plane.sites.show_site(std::move(id), std::move(tenant)));
  json::object out = write_site(site, plane.clock.wall());
  CO_TRY(cameras, co_await plane.sites.count_cameras(std::move(site.id), std::move(site.tenant)));
  out["cameras_enabled"] = cameras;
  co_return net::Response::json(out);
}

Reply remove_site(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(id, path_id<SiteId>(request));
  SiteId doomed = id;
  TenantId tenant = caller.tenant;
  CO_TRY(gone, co_await plane.sites.remove_site(std::move(doomed), std::move(tenant)));
  log::info("site.deleted").with("site_id", id).with("request_id", request.request_id);
  co_return net::Response::json(json::object{{"site_id", id.str()}, {"deleted", true}});
}

// What a reader compares to see that anything changed in a site's cameras, or in their zones.
class SiteVersion {
 public:
  explicit SiteVersion(WallTime created) : updated_(created) {}
  void add(const CameraRecord& record) {
    configs_ += fmt::format("{}\n{}\n{}\n", record.config.camera, config_version(record), record.config.enabled);
    zones_ += fmt::format("{}\n{}\n", record.config.camera, zone_version(record.config));
    updated_ = std::max(updated_, record.updated_at);
  }
  json::object written() const {
    return {{"config_version", net::sha256_hex(configs_)},
            {"zone_version", net::sha256_hex(zones_)},
            {"updated_at", to_iso(updated_)}};
  }

 private:
  std::string configs_, zones_;
  WallTime updated_;
};

Reply show_config_version(Plane& plane, net::Request& request, const Caller& caller) {
  constexpr int kCamerasAtOnce = 500;
  CO_TRY(place, place_of(request, caller));
  CO_TRY(site, co_await plane.sites.show_site(place.site, place.tenant));
  SiteVersion version(site.created_at);
  for (CameraId after;;) {
    CameraFilter filter{place.tenant, place.site, {}, after, kCamerasAtOnce};
    CO_TRY(cameras, co_await plane.cameras.list_cameras(std::move(filter)));
    for (const CameraRecord& record : cameras) version.add(record);
    if (static_cast<int>(cameras.size()) < kCamerasAtOnce) break;
    after = cameras.back().config.camera;
  }
  json::object out{{"tenant_id", site.tenant.str()}, {"site_id", site.id.str()}};
  for (auto& member : version.written()) out[member.key()] = member.value();
  co_return net::Response::json(out);
}

// ---- budgets ----

Reply show_budget(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(id, path_id<SiteId>(request));
  TenantId tenant = caller.tenant;
  CO_TRY(site, co_await plane.sites.show_site(std::move(id), std::move(tenant)));
  co_return net::Response::json(write_budget(site, plane.clock.wall()));
}

Reply set_budget(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(id, path_id<SiteId>(request));
  CO_TRY(body, body_as<BudgetBody>(request, json::Unknown::reject));
  if (body.tokens && *body.tokens > body.capacity) co_return bad_field("tokens", "must not be above capacity");
  TenantId tenant = caller.tenant;
  CO_TRY(site, co_await plane.sites.set_budget(std::move(id), std::move(tenant), body.capacity, body.refill_rate,
                                                 body.tokens));
  log::info("site.budget")
      .with("site_id", site.id)
      .with("capacity", body.capacity)
      .with("refill_rate", body.refill_rate)
      .with("request_id", request.request_id);
  co_return net::Response::json(write_budget(site, plane.clock.wall()));
}

Result<std::optional<BudgetUse>> read_use(const net::Request& request) {
  if (request.body.empty()) return std::optional<BudgetUse>();
  TRY(body, body_as<ConsumeBody>(request));
  if (body.camera.empty() && !body.grant_version) return std::optional<BudgetUse>();
  if (body.camera.empty()) return bad_field("camera_uuid", "is required with grant_version");
  if (!body.grant_version) return bad_field("grant_version", "is required with camera_uuid");
  return std::optional<BudgetUse>(BudgetUse{body.camera, lease::Version{*body.grant_version}});
}

Reply consume_budget(Plane& plane, net::Request& request, const Caller& caller) {
  CO_TRY(id, path_id<SiteId>(request));
  CO_TRY(use, read_use(request));
  SiteId site = id;
  TenantId tenant = caller.tenant;
  CO_TRY(answer, co_await plane.leases.consume(std::move(site), std::move(tenant), std::move(use)));
  if (!answer.granted) {
    auto wait_ms = std::chrono::ceil<std::chrono::milliseconds>(answer.retry_after).count();
    co_return Error{Errc::conflict,
                    "budget_empty",
                    "the site has no token left; ask again later",
                    {{"site_id", id.str()}, {"retry_after_ms", wait_ms}}};
  }
  co_return net::Response::json(json::object{{"site_id", id.str()},
                                             {"granted", true},
                                             {"tokens", number(answer.tokens)},
                                             {"capacity", number(answer.capacity)},
                                             {"updated_at", to_iso(plane.clock.wall())}});
}

}  // namespace

Site new_site(const ControlPlaneSettings& settings, SiteId id, TenantId tenant) {
  Site site{std::move(id), std::move(tenant), ""};
  site.budget.capacity = site.budget.tokens = settings.budget_capacity;
  site.budget.refill_per_min = settings.budget_refill_per_min;
  return site;
}

void add_site_routes(net::Router& router, Plane& plane) {
  add_guarded(router, plane, Method::get, "/v1/tenants", kReaders, list_tenants);
  add_guarded(router, plane, Method::post, "/v1/tenants", kAdmins, add_tenant);
  add_guarded(router, plane, Method::get, "/v1/tenants/{tenant_id}", kReaders, show_tenant);
  add_guarded(router, plane, Method::del, "/v1/tenants/{tenant_id}", kAdmins, remove_tenant);
  add_guarded(router, plane, Method::get, "/v1/sites", kReaders, list_sites);
  add_guarded(router, plane, Method::post, "/v1/sites", kAdmins, add_site);
  add_guarded(router, plane, Method::get, "/v1/sites/{site_id}", kReaders, show_site);
  add_guarded(router, plane, Method::del, "/v1/sites/{site_id}", kAdmins, remove_site);
  add_guarded(router, plane, Method::get, "/v1/tenants/{tenant_id}/sites/{site_id}/config/version", kReadersAndRunners,
              show_config_version);
  add_guarded(router, plane, Method::get, "/v1/sites/{site_id}/budget", kReadersAndRunners, show_budget);
  add_guarded(router, plane, Method::put, "/v1/sites/{site_id}/budget", kAdmins, set_budget);
  add_guarded(router, plane, Method::post, "/v1/sites/{site_id}/budget/consume", kRunners, consume_budget);
}

}  // namespace weir::control_plane
