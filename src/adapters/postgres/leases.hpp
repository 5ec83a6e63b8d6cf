// Lease and budget statements on one session. Private to this folder; throws PgFailure.
#pragma once

#include "connection.hpp"

#include "weir/ports/lease_store.hpp"

namespace weir::postgres {

std::vector<lease::Answer> apply(Connection& c, const lease::Batch& batch, const LeaseLimits& limits);
TickReport tick(Connection& c, const LeaseLimits& limits);
Result<LeaseView> revoke(Connection& c, const CameraId& camera, const TenantId& tenant, const LeaseLimits& limits);
Result<std::vector<lease::LeaseRow>> release_all(Connection& c, const lease::Owner& owner,
                                                 const std::string& will_sha256, const LeaseLimits& limits);
std::vector<lease::LeaseRow> take_expired(Connection& c, int most);
std::vector<LeaseView> list_leases(Connection& c, const LeaseFilter& filter);
Result<LeaseView> show_lease(Connection& c, const CameraId& camera, const TenantId& tenant);
Result<LeaseView> note_lease(Connection& c, const LeaseWord& word, const TenantId& tenant);
Result<BudgetAnswer> consume(Connection& c, const SiteId& site, const TenantId& tenant,
                             const std::optional<BudgetUse>& use);

}  // namespace weir::postgres
