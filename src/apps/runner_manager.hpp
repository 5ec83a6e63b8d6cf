// The manager half of `weir runner`: wires the runner service to its adapters. See runner.hpp. Main thread only.
#pragma once

#include "runner_parent.hpp"

#include <functional>

namespace weir::apps {

// `reload` reads the settings again, for SIGHUP.
Result<int> run_manager(const Settings& settings, RunnerOptions options, std::function<Result<Settings>()> reload);

}  // namespace weir::apps
