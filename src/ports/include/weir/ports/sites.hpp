// Sites: the tenants of an installation and the places where their cameras stand.
//
// A tenant owns sites, and a site belongs to one tenant for good. A site has a budget: a bucket of tokens, of which every
// dial of one of its cameras costs one, so that an outage does not end with all cameras being dialled at once.
// Tenant-scoped callers pass their tenant; an empty one means all. An id that another tenant has answers `conflict`
// without detail on creation and `not_found` otherwise. Loop thread only.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/time.hpp"
#include "weir/bucket/bucket.hpp"
#include "weir/ports/async.hpp"

#include <optional>
#include <string>
#include <vector>

namespace weir {

struct Tenant {
  TenantId id;
  std::string name;
  WallTime created_at{};
};

struct Site {
  SiteId id;
  TenantId tenant;
  std::string name;
  bucket::Bucket budget;
  WallTime created_at{};
};

class Sites {
 public:
  virtual ~Sites() = default;

  virtual Async<Tenant> add_tenant(Tenant tenant) = 0;
  virtual Async<std::vector<Tenant>> list_tenants(TenantId only, TenantId after, int limit) = 0;
  virtual Async<Nothing> remove_tenant(TenantId id) = 0;  // only one without sites

  virtual Async<Site> add_site(Site site) = 0;
  virtual Async<std::vector<Site>> list_sites(TenantId tenant, SiteId after, int limit) = 0;
  virtual Async<Site> show_site(SiteId id, TenantId tenant) = 0;
  virtual Async<int> count_cameras(SiteId id, TenantId tenant) = 0;    // those of the site that are enabled
  virtual Async<Nothing> remove_site(SiteId id, TenantId tenant) = 0;  // only one without cameras
  // Sets capacity and rate. The bucket then holds `tokens` where given, else what it held, cut to the new capacity.
  virtual Async<Site> set_budget(SiteId id, TenantId tenant, double capacity, double refill_per_min,
                                 std::optional<double> tokens) = 0;
};

}  // namespace weir
