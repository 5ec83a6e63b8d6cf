// Checks: what must be true after every event, judged with knowledge of the whole simulated world.
//
// The checks know the true time and every clock's rate, and read the store's rows; nothing in the simulated world does.
// The first violation is kept and ends the run.
#pragma once

#include "sim_store.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>

namespace weir::sim {

struct Violation {
  TrueTime at = 0;
  std::string what;
};

class Checks {
 public:
  explicit Checks(SimStore& store) : store_(store) {}
  const std::optional<Violation>& violation() const { return violation_; }
  void fail(TrueTime now, std::string what);

  // The store answered. `believed_until` is the true time at which a holder that hears it must fall silent.
  void answered(TrueTime now, const lease::Batch& batch, const lease::Answer& answer);
  // A holder heard a yes and may believe in it until then.
  void believes(const CameraId& camera, const lease::Owner& owner, lease::Version version, TrueTime until);
  bool believed(const CameraId& camera, lease::Version version) const;
  // A holder gave up a camera without being told to: the store must have moved on.
  void stopped(TrueTime now, const CameraId& camera, lease::Version version);
  // A process was given a version, which is nobody else's from now on.
  void used(TrueTime now, const SubjectId& subject, lease::Version version, int process);
  // A process stamped a version on an event at `now`; `right_until` is when its right really ended.
  void emitted(TrueTime now, const CameraId& camera, lease::Version version, int process, TrueTime right_until);
  // The sink accepted an event.
  void accepted(TrueTime now, const CameraId& camera, lease::Version version, TrueTime captured);
  // A lease was taken over from an owner that had no trouble of its own.
  void taken_over(TrueTime now, const CameraId& camera, bool owner_had_trouble);
  void dialled(TrueTime now, int first_dials, double capacity, double refill_per_min);
  void tokens(TrueTime now, double tokens, double capacity);
  // Lease time as it runs, so that what a failover sets back still counts as time that refilled the buckets.
  void lease_time(LeaseTime at);

  TrueTime last_accepted(const CameraId& camera) const;

 private:
  struct Span {
    TrueTime first, last;
  };
  struct Belief {
    lease::Owner owner;
    TrueTime until;
  };
  SimStore& store_;
  std::optional<Violation> violation_;
  std::map<CameraId, lease::Version> highest_drawn_;
  std::map<CameraId, std::set<lease::Version>> released_;
  std::map<CameraId, std::map<lease::Version, Belief>> beliefs_;
  std::map<std::pair<CameraId, lease::Version>, int> emitter_;
  std::map<CameraId, lease::Version> highest_accepted_;
  std::map<CameraId, std::map<lease::Version, Span>> spans_;
  std::map<CameraId, TrueTime> last_accepted_;
  LeaseTime lease_seen_{};
  Duration lease_run_{};
};

}  // namespace weir::sim
