// LeaseRow: who may speak for a camera, as the store keeps it. One row a camera, never deleted.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/time.hpp"
#include "weir/lease/version.hpp"

#include <optional>
#include <string>

namespace weir::lease {

// A process that asks. The boot is random for each start of a manager: a copied runner_id or a paused predecessor is
// another owner. The seeds' simple routes carry no boot; theirs is empty.
struct Owner {
  RunnerId runner;
  BootId boot;
  friend auto operator<=>(const Owner&, const Owner&) = default;
};

// From a grant to the next one. Rotation, release and a worker's restart keep it. A spool belongs to a tenure.
struct Tenure {
  BootId boot;
  Version grant;
  friend auto operator<=>(const Tenure&, const Tenure&) = default;
};

struct LeaseRow {
  CameraId camera;
  TenantId tenant = {};
  SiteId site = {};
  bool assignable = true;   // the camera exists, is enabled and is processed by leases
  Owner owner = {};         // the last owner; empty if there never was one
  Version version = {};
  Version grant = {};       // the version of the present or last grant
  std::string last_key = {};
  LeaseTime expires = {};
  Duration ttl = {};
  bool released = true;     // released, revoked or never owned
  bool revoked = false;
  std::optional<Tenure> previous = {};
  WallTime acquired_at = {};
  friend bool operator==(const LeaseRow&, const LeaseRow&) = default;
};

// Whether what was spooled under `tenure` shall be dropped by the boot `own`, as one who looks at a disk: another grant
// came after it, and not the one with which `own` may be adopting it just now; or the camera is disabled or deleted.
inline bool is_over(const Tenure& tenure, const LeaseRow& row, const BootId& own) {
  bool adoptable = row.owner.boot == own && !row.released && row.previous == tenure;
  return !row.assignable || (row.grant > tenure.grant && !adoptable);
}

}  // namespace weir::lease
