// The store as the simulated world uses it: the fake (the domain's rules over maps) or the real SQL of SQLite in
// memory.
#pragma once

#include "fake_store.hpp"
#include "planted.hpp"
#include "timeline.hpp"

#include "weir/sqlite/core.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace weir::sim {

class SimStore {
 public:
  virtual ~SimStore() = default;
  virtual std::vector<lease::Answer> apply(const lease::Batch& batch) = 0;
  virtual void tick() = 0;
  virtual void release_all(const lease::Owner& owner) = 0;
  virtual bool consume(const SiteId& site, const CameraId& camera, lease::Version grant) = 0;
  virtual void revoke(const CameraId& camera) = 0;
  virtual void register_boot(const lease::Owner& owner) = 0;
  virtual void heartbeat(const RunnerId& runner) = 0;
  // A subject that nobody has asked for yet is free.
  virtual lease::LeaseRow row(const SubjectId& subject) = 0;
  virtual const lease::StoreState& state() = 0;
  virtual double tokens(const SiteId& site) = 0;
  virtual Result<Nothing> tell(const StreamTold& told) = 0;
  virtual Result<StreamRecord> record(const SubjectId& stream) = 0;
  virtual std::vector<StreamRecord> records() = 0;
  // A failover to a replica that had not heard the last commits. Not every store has one.
  virtual bool can_fail_over() const { return false; }
  virtual void remember(TrueTime) {}
  virtual void fail_over(TrueTime) {}
};

struct SimStoreConfig {
  std::vector<CameraId> cameras;
  SiteId site;
  double bucket_capacity = 4;
  double bucket_refill_per_min = 60;
  Planted planted = Planted::none;
};

inline const TenantId kTenant = TenantId::trusted("t");

std::unique_ptr<SimStore> make_fake_store(std::function<WallTime()> clock, const SimStoreConfig& config);
std::unique_ptr<SimStore> make_sqlite_store(std::function<WallTime()> clock, const SimStoreConfig& config);

}  // namespace weir::sim
