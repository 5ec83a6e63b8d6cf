// Ledger: a whole batch of lease requests against rows that stand still meanwhile.
//
// For stores that have no language of their own in which the rules could be written: such stores give access to their
// rows inside one transaction, and these functions do the rest. The same code therefore answers in the embedded
// store, in the fake of the tests and in the simulator.
#pragma once

#include "weir/lease/decide.hpp"

#include <optional>
#include <vector>

namespace weir::lease {

// Access to the rows of one transaction. Nobody else reads or writes them until it ends.
class Rows {
 public:
  virtual ~Rows() = default;
  virtual std::optional<LeaseRow> find(const SubjectId& subject) = 0;
  virtual void save(const LeaseRow& row) = 0;
  virtual bool boot_dead(const Owner& owner) = 0;
  virtual bool cordoned(const RunnerId& runner) = 0;
  virtual bool avoided(const CameraId& camera, const RunnerId& runner, LeaseTime now) = 0;
  // Another live, uncordoned runner with room, without an `avoid` for this camera. Slow: it counts the leases of the
  // whole fleet.
  virtual bool other_eligible(const CameraId& camera, const RunnerId& runner, LeaseTime now) = 0;
  virtual void add_avoid(const CameraId& camera, const RunnerId& runner, LeaseTime now) = 0;
  // After a new epoch: tokens that lost commits had given away must not be given again.
  virtual void empty_buckets(LeaseTime now) = 0;
};

struct Applied {
  std::vector<Answer> answers;   // in the order of the asks
  bool epoch_opened = false;
};

// Judges the whole batch at one moment. `state` is moved on where versions are drawn or an epoch is opened.
Applied apply(Rows& rows, StoreState& state, const Batch& batch, WallTime clock, Duration ttl_max);

}  // namespace weir::lease
