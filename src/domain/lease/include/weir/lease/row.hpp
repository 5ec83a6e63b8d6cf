// LeaseRow: which owner may publish ("speak") for a subject, as the store keeps it. One row a subject, never deleted.
//
// A subject is a camera, or something else of which the same is true: at most one process may speak for it. The rules
// are the same for all kinds; only a camera's row is made by the catalog, and only cameras know runners' capacity,
// budgets and `avoid`. The row of another kind is made by the first acquire. A camera may be processed by a cluster:
// then nobody can have its own lease, and whoever holds the cluster's speaks for it.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/json.hpp"
#include "weir/base/time.hpp"
#include "weir/lease/version.hpp"

#include <array>
#include <optional>
#include <string>

namespace weir::lease {

// A process that asks. The boot is random for each start of a manager: a copied runner_id or a paused predecessor is
// another owner. Clients of the routes for one camera may give no boot: theirs is empty.
struct Owner {
  RunnerId runner;
  BootId boot;
  friend auto operator<=>(const Owner&, const Owner&) = default;
};

// Tenure: the time from a grant to the next one, named by the boot and the grant. Rotation, release and a worker's
// restart keep it. A spool belongs to a tenure.
struct Tenure {
  BootId boot;
  Version grant;
  friend auto operator<=>(const Tenure&, const Tenure&) = default;
};

enum class Kind { camera, stream, cluster };
inline constexpr std::array<json::EnumName<Kind>, 3> kKindNames = {
    {{Kind::camera, "camera"}, {Kind::stream, "stream"}, {Kind::cluster, "cluster"}}};
constexpr auto& enum_names(Kind) { return kKindNames; }
std::string_view to_string(Kind kind);
// How JSON calls the id of such a subject.
std::string_view id_field(Kind kind);
// Where a store's row has no word that this version of Weir knows: a camera.
Kind kind_of(std::string_view word);

struct LeaseRow {
  SubjectId subject;
  TenantId tenant = {};
  SiteId site = {};
  bool assignable = true;   // a camera: it exists, is enabled and is processed by leases
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
  Kind kind = Kind::camera;
  SubjectId cluster = {};   // a camera: the cluster whose holder speaks for it; empty: the owner of this lease does
  friend bool operator==(const LeaseRow&, const LeaseRow&) = default;
};

// Whether the boot `own`, which found a spool of `tenure` on its disk, shall drop that spool: another grant came
// after the tenure, and not the one with which `own` may be adopting the spool just now; or the camera is disabled or
// deleted.
inline bool is_over(const Tenure& tenure, const LeaseRow& row, const BootId& own) {
  bool adoptable = row.owner.boot == own && !row.released && row.previous == tenure;
  return !row.assignable || (row.grant > tenure.grant && !adoptable);
}

}  // namespace weir::lease
