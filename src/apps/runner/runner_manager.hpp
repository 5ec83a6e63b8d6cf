// The manager half of `weir runner`: wires the runner service to its adapters. See runner.hpp. Main thread only.
#pragma once

#include "common/command.hpp"
#include "runner_parent.hpp"

#include "weir/runner/brain.hpp"

namespace weir::apps {

// What the settings say of what a runner decides.
runner::Policy policy_of(const Settings& s);

// `arguments` for reading the settings again.
Result<int> run_manager(const Arguments& arguments, const Settings& settings, RunnerOptions options);

}  // namespace weir::apps
