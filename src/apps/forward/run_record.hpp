// How many instances a run has had: kept beside the log, so that a supervisor need not count. Main thread only.
#pragma once

#include "weir/base/settings.hpp"
#include "weir/egress/report.hpp"

namespace weir::apps {

// Instances of this run before this one, as far as the record FILE-<stream>.run in `folder` knows; then this one is
// recorded.
std::int64_t count_restarts(const std::string& folder, std::string_view file, const egress::Identity& identity);

}  // namespace weir::apps
