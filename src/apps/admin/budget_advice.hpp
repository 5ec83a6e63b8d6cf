// BudgetAdvice: whether a site's budget is large enough for its cameras.
//
// A runner that dies lets go of all its cameras at once, and each takes a token of its site before it is dialled
// again: with more cameras than tokens the last ones stay dark for longer than the lease makes them. A person who
// adds cameras is told so, with the command that raises the budget. `takeover_of` and `budget_warning` are pure;
// `budget_warnings` asks and blocks. Main thread only.
#pragma once

#include "camera_file.hpp"
#include "common/api.hpp"

#include <set>
#include <string>
#include <vector>

namespace weir::apps {

struct SiteBudget {
  std::string site;
  int cameras = 0;  // enabled ones
  double capacity = 0, refill_per_min = 0;
};

// How long it takes until all cameras of the site stream elsewhere after their runner died, with a full bucket and
// the default lease time; nothing where the budget never allows it.
std::optional<Duration> takeover_of(const SiteBudget& budget);
// "" where a takeover of all of them takes ten seconds at most.
std::string budget_warning(const SiteBudget& budget);
std::set<std::string> sites_in(const std::vector<CameraLine>& cameras);
// The warnings about those sites; a site that the control plane does not show is passed over.
std::vector<std::string> budget_warnings(Api& api, const std::set<std::string>& sites);

}  // namespace weir::apps
