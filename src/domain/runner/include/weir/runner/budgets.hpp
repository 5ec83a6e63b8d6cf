// Budgets: the tokens of the sites whose cameras this runner drains.
//
// A camera that is let go while its site's budget is used up would be dark until its next owner has a token. So it
// stays until the site has one, or none has come for as long as a drained batch is waited for. Asking is a courtesy to
// the cameras: where nobody answers, the drain goes on. Pure; one thread.
#pragma once

#include "weir/runner/turn.hpp"

namespace weir::runner {

class Budgets {
 public:
  // Whether the next owner of one of the site's cameras may dial it now; a true answer uses a token up.
  bool may_dial(const SiteId& site, Turn& turn);
  void hear(const BudgetHeard& event, Turn& turn);
  // Before the next batch the runner asks again how many tokens each site has: by then the next owners have paid for
  // this batch.
  void batch_left(const Turn& turn);
  void clear() { sites_.clear(); }

 private:
  struct Budget {
    double tokens = 0;  // as heard, less what was let go since
    bool asked = false, told = false;
    Instant ask_at{};
    std::optional<Instant> empty_since = {};
  };
  std::map<SiteId, Budget> sites_;
};

}  // namespace weir::runner
