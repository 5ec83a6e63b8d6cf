// What the store answers to a lease request. The rules 3, 4, 8, 9, 10, 14 and 15 of the lease protocol live here.
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
  held,      // somebody has it (possibly the asker, under another key)
  lost,      // the asker's version is over; `version` is above it
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
  not_found,    // no such camera, or one of another tenant
  disabled,     // disabled, deleted, or processed by the cluster
  boot_dead,    // this boot's last will was carried out
  cordoned,     // the runner is cordoned or draining
  avoided,      // this runner could not reach the camera, or was relieved of it, a moment ago, and another can take it
  settling,     // the store came back a moment ago; holders may renew first
};
inline constexpr std::array<json::EnumName<Refusal>, 7> kRefusalNames = {
    {{Refusal::none, "none"}, {Refusal::not_found, "not_found"}, {Refusal::disabled, "disabled"},
     {Refusal::boot_dead, "boot_dead"}, {Refusal::cordoned, "cordoned"}, {Refusal::avoided, "avoided"},
     {Refusal::settling, "settling"}}};
constexpr auto& enum_names(Refusal) { return kRefusalNames; }

struct Ask {
  CameraId camera;
  std::optional<Version> version = {};  // what the asker believes; absent on the seeds' simple routes
  bool rotate = false;                  // renew: under a new version
  std::string key = {};                 // acquire and rotate: makes a replay recognisable; "" on the simple routes
  bool avoid = false;                   // release: this runner cannot reach the camera, somebody else should try
};

struct Batch {
  Operation operation = Operation::acquire;
  Owner owner;
  Duration ttl = {};
  std::vector<Ask> asks = {};
  TenantId tenant = {};  // empty: any
};

struct Answer {
  CameraId camera;
  Outcome outcome = Outcome::unknown;
  Version version = {};
  Version grant = {};
  Duration ttl = {};
  WallTime expires_at = {};                // for display
  std::optional<Tenure> previous = {};     // granted: the tenure before this one, whose spool may be adopted
  Refusal why = Refusal::none;
  bool yours = false;                      // held: by the asker itself
  bool stolen = false;                     // granted over another owner's expired lease
  TenantId tenant = {};                    // granted and released, but not on renewal: where the camera stands
  SiteId site = {};
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
// Whether others may take leases that have run out: no hold protects those who were cut off together with the store.
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

// The fence (rule 7): whether an event that `speaker` stamped with `stamped` is accepted. The row stays locked from
// this look until the event is stored. A version of an older epoch is refused even where it equals the row's: after a
// failover that lost commits the row may name an owner whose successor has already been heard.
bool fence_accepts(const LeaseRow& row, const Owner& speaker, Version stamped, std::int64_t epoch);

// An administrator, or a camera that is disabled or deleted, ends a lease: the version rises, the row is free.
LeaseRow revoke(LeaseRow row, Version next);

// 1, 2, 4, 8, 16, 16 … minutes.
Duration avoid_duration(int strikes);
inline constexpr Duration kRevokedAvoid = 30s;

}  // namespace weir::lease
