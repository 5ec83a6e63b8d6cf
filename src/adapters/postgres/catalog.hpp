// Catalog statements on one session. Private to this folder; throws PgFailure.
#pragma once

#include "connection.hpp"

#include "weir/ports/catalog.hpp"
#include "weir/ports/lease_store.hpp"

namespace weir::postgres {

Result<Tenant> add_tenant(Connection& c, Tenant tenant);
std::vector<Tenant> list_tenants(Connection& c, const TenantId& only, const TenantId& after, int limit);
Result<Nothing> remove_tenant(Connection& c, const TenantId& id);
Result<Site> add_site(Connection& c, Site site);
std::vector<Site> list_sites(Connection& c, const TenantId& tenant, const SiteId& after, int limit);
Result<Site> show_site(Connection& c, const SiteId& id, const TenantId& tenant);
int count_cameras(Connection& c, const SiteId& id, const TenantId& tenant);
Result<Nothing> remove_site(Connection& c, const SiteId& id, const TenantId& tenant);
Result<Site> set_budget(Connection& c, const SiteId& id, const TenantId& tenant, double capacity,
                        double refill_per_min, std::optional<double> tokens);
Result<CameraRecord> add_camera(Connection& c, const camera::Config& config, const LeaseLimits& limits);
Result<std::vector<CameraRecord>> list_cameras(Connection& c, const CameraFilter& filter);
Result<CameraRecord> show_camera(Connection& c, const CameraId& id, const TenantId& tenant);
Result<CameraRecord> edit_camera(Connection& c, const CameraId& id, const TenantId& tenant,
                                 const Cameras::CameraEdit& change, const LeaseLimits& limits);
Result<Nothing> remove_camera(Connection& c, const CameraId& id, const TenantId& tenant, const LeaseLimits& limits);
Result<int> count_crash(Connection& c, const CameraId& id, const TenantId& tenant);
Result<Runner> register_runner(Connection& c, Runner runner, const std::string& will_sha256, const TenantId& tenant,
                               const LeaseLimits& limits);
Result<RunnerOrders> heartbeat(Connection& c, const RunnerId& id, const TenantId& tenant,
                               const boost::json::object& body, int streams_owned, const LeaseLimits& limits);
std::vector<Runner> list_runners(Connection& c, const TenantId& tenant, const RunnerId& after, int limit,
                                 const LeaseLimits& limits);
Result<Runner> show_runner(Connection& c, const RunnerId& id, const TenantId& tenant, const LeaseLimits& limits);
Result<Runner> change_runner(Connection& c, const RunnerId& id, const TenantId& tenant, const RunnerChange& change,
                             const LeaseLimits& limits);
Result<Nothing> remove_runner(Connection& c, const RunnerId& id, const TenantId& tenant, const LeaseLimits& limits);

}  // namespace weir::postgres
