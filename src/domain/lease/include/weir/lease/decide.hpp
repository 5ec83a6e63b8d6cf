// What the store answers to a lease request: the tables of "What the store answers" in docs/lease-protocol.md.
//
// Pure: the row as it is, the request, the moment → the answer and the row as it shall be. The caller holds the row
// from reading it until it has written it, so nothing can come between. SQLite and the test fake call these functions;
// PostgreSQL says the same in one SQL statement a batch, and a differential test holds the two together.
#pragma once

#include "weir/base/json.hpp"
#include "weir/lease/lease_time.hpp"
#include "weir/lease/row.hpp"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace weir::lease {

enum class Operation { acquire, renew, release };

enum class Outcome {
  granted,   // a new tenure, under a version nobody was given before
  renewed,   // the same version for another TTL
  rotated,   // the same tenure under a new version
  held,      // an owner has the subject (possibly the asker, under another key)
  lost,      // the asker's version is no longer valid; `version` is above it
  released,
  kept,      // a release with `avoid` that would have left nobody able to take the camera
  refused,   // see Refusal
  unknown,   // the store cannot say now: neither yes nor lost
};
inline constexpr std::array<json::EnumName<Outcome>, 9> kOutcomeNames = {
    {{Outcome::granted, "granted"}, {Outcome::renewed, "renewed"}, {Outcome::rotated, "rotated"},
     {Outcome::held, "held"}, {Outcome::lost, "lost"}, {Outcome::released, "released"}, {Outcome::kept, "kept"},
     {Outcome::refused, "refused"}, {Outcome::unknown, "unknown"}}};
constexpr auto& enum_names(Outcome) { return kOutcomeNames; }

enum class Refusal {
  none,
  not_found,    // no such subject, or one of another tenant
  disabled,     // disabled, deleted, or processed by the cluster
  boot_dead,    // this boot's last will was carried out
  cordoned,     // the runner is cordoned or draining
  avoided,      // this runner could not reach the camera, or was relieved of it, a moment ago, and another can take it
  settling,     // the store came back a moment ago; holders may renew first
  taken,        // the id that a new subject was to have is another tenant's, or another kind's
};
inline constexpr std::array<json::EnumName<Refusal>, 8> kRefusalNames = {
    {{Refusal::none, "none"}, {Refusal::not_found, "not_found"}, {Refusal::disabled, "disabled"},
     {Refusal::boot_dead, "boot_dead"}, {Refusal::cordoned, "cordoned"}, {Refusal::avoided, "avoided"},
     {Refusal::settling, "settling"}, {Refusal::taken, "taken"}}};
constexpr auto& enum_names(Refusal) { return kRefusalNames; }

struct Ask {
  SubjectId subject;
  std::optional<Version> version = {};  // what the asker believes; absent on the routes for one camera
  bool rotate = false;                  // renew: under a new version
  std::string key = {};                 // acquire and rotate: marks a replay; "" on the routes for one camera
  bool avoid = false;                   // release: this runner cannot reach the camera, another one should try
};

// Where a subject that its first acquire makes will stand.
struct Home {
  TenantId tenant;
  SiteId site;
};

struct Batch {
  Operation operation = Operation::acquire;
  Owner owner;
  Duration ttl = {};
  std::vector<Ask> asks = {};
  TenantId tenant = {};  // empty: any
  Kind kind = Kind::camera;  // of all its subjects
  Home home = {};            // acquire: of those that the store does not know yet; no camera is made here
};

// Whether the store makes rows for subjects that it does not know: cameras come from the catalog.
bool makes_rows(const Batch& batch);

struct Answer {
  SubjectId subject;
  Outcome outcome = Outcome::unknown;
  Version version = {};
  Version grant = {};
  Duration ttl = {};
  WallTime expires_at = {};                // for display
  std::optional<Tenure> previous = {};     // granted: the tenure before this one, whose spool may be adopted
  Refusal why = Refusal::none;
  bool yours = false;                      // held: by the asker itself
  bool stolen = false;                     // granted over another owner's expired lease
  bool replayed = false;                   // granted, rotated or released before, and now asked again
  WallTime acquired_at = {};               // where the asker has it: since when, by the store's clock
  TenantId tenant = {};                    // granted, released or `yours`, but not on renewal: where the subject stands
  SiteId site = {};
  // Whether the asker has the subject now.
  bool holds() const {
    return outcome == Outcome::granted || outcome == Outcome::renewed || outcome == Outcome::rotated || yours;
  }
  friend bool operator==(const Answer&, const Answer&) = default;
};

// What the store knows at the moment of the decision.
struct Moment {
  LeaseTime now;
  LeaseTime hold_until = {};
  LeaseTime closed_until = {};
  std::int64_t epoch = 1;
  Version next;             // the version that this decision may draw
};
Moment moment_of(const StoreState& state, WallTime clock);
// Whether others may take leases that have run out: true while no hold keeps them for holders that lost the store.
bool settled(const Moment& moment);

// What the store knows about the asker besides the row.
struct Facts {
  bool boot_dead = false;
  bool cordoned = false;
  bool avoided = false;          // an `avoid` of this runner for this camera is in force
  bool other_eligible = false;   // a live, uncordoned runner with room and without an `avoid` exists
};

struct Decision {
  Answer answer;
  std::optional<LeaseRow> write = {};
  bool drew = false;          // Moment::next is used up
  bool lost_commits = false;  // the asker presents a version above the row's: the store must open a new epoch
  bool add_avoid = false;
};

Decision decide(const LeaseRow& row, const Batch& batch, const Ask& ask, const Moment& moment, const Facts& facts);

// The fence: whether an event that `speaker` stamped with `stamped` is accepted. The row stays locked from
// this check until the event is stored. A version of an older epoch is refused even where it equals the row's: after a
// failover that lost commits the row may name an owner whose successor has already been heard.
bool fence_accepts(const LeaseRow& row, const Owner& speaker, Version stamped, std::int64_t epoch);

// The same for an event about a camera that a cluster processes: `cluster` is the row of the cluster that the camera
// names. Its version must also be above the camera's own, which rises whenever another is put in charge: a reader of
// the camera's events therefore never sees a version fall, whoever speaks for the camera after whom.
bool fence_accepts(const LeaseRow& camera, const LeaseRow& cluster, const Owner& speaker, Version stamped,
                   std::int64_t epoch);

// An administrator, or a camera that is disabled or deleted, ends a lease: the version rises, the row is free.
LeaseRow revoke(LeaseRow row, Version next);

// Who may speak for a camera: the owner of its lease, where it is assignable; else the holder of the lease of
// `cluster`, where there is one; else nobody.
struct Charge {
  bool assignable = true;
  SubjectId cluster = {};
  friend bool operator==(const Charge&, const Charge&) = default;
};
struct Charged {
  LeaseRow row;
  bool drew = false;  // `next` is used up
};
// The camera's row once `charge` holds. A lease that somebody has ends if the camera is no longer assignable. A camera
// that leaves its cluster gets a version above all that the cluster used for it, and no owner: no tenure from before
// the cluster's time is continued.
Charged put_in_charge(LeaseRow row, const Charge& charge, Version next);

// How long an `avoid` is in force: 1, 2, 4, 8, 16, 16 … minutes, growing with the strikes.
Duration avoid_duration(int strikes);
inline constexpr Duration kRevokedAvoid = 30s;

}  // namespace weir::lease
