#include "weir/runner/load.hpp"

namespace weir::runner {

void Load::hear(const LoadHeard& event, Turn& turn) {
  std::string what = event.too_high ? event.what : "";
  if (overload_.empty() && !what.empty()) turn.warn("runner.overloaded", what + "; no further cameras are taken");
  if (!overload_.empty() && what.empty()) turn.note("runner.load_normal", "cameras are taken again");
  overload_ = std::move(what);
}

bool Load::look(int behind, const Turn& turn) {
  if ((behind == 0) == keeps_up_) {
    other_since_.reset();
    return false;
  }
  if (!other_since_) other_since_ = turn.now;
  if (turn.now < *other_since_ + turn.policy.overload_after) return false;
  other_since_.reset();
  keeps_up_ = !keeps_up_;
  return true;
}

std::string Load::why_not(int behind) const {
  if (keeps_up_) return overload_;
  return fmt::format("{} of its cameras {} looked at less often than wanted", behind, behind == 1 ? "is" : "are");
}

}  // namespace weir::runner
