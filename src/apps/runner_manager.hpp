// The manager half of `weir runner`: wires the runner service to its adapters. See runner.hpp. Main thread only.
#pragma once

#include "runner_parent.hpp"

namespace weir::apps {

Result<int> run_manager(const Settings& settings, RunnerOptions options);

}  // namespace weir::apps
