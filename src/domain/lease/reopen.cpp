#include "weir/lease/reopen.hpp"

#include "weir/lease/version.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::lease {

Result<StoreState> reopen(StoreState copy, const Reopening& how) {
  std::int64_t known = std::max(copy.epoch, how.replaced ? how.replaced->epoch : 0);
  std::int64_t leap = how.complete ? 1 : kEpochLeap;
  std::int64_t next = how.epoch.value_or(std::max(copy.epoch + leap, known + 1));
  if (next <= known)
    return Error{Errc::invalid, "usage",
                 fmt::format("--epoch must be above {}, the highest epoch that is known", known)};
  if (next > kEpochMax)
    return Error{Errc::unprocessable, "no_epoch_left",
                 fmt::format("epoch {} would be next, and {} is the last there is; a lower one above {} may be given "
                             "with --epoch", next, kEpochMax, known)};
  copy.epoch = next;
  if (how.replaced) copy.counter = std::max(copy.counter, how.replaced->counter);
  // The first look at the clock opens a hold: runners that held a lease when the store stopped may renew first.
  copy.hold_opened = std::min(copy.hold_opened, copy.lease_now - kHoldEvery);
  // The first look at the clock may also add a step that no holder has lived through.
  if (!how.complete) copy.closed_until = std::max(copy.closed_until, copy.lease_now + kStepMax + how.ttl_max);
  return copy;
}

}  // namespace weir::lease
