// The parent half of `weir runner`: see runner.hpp. Main thread only.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/secret.hpp"
#include "weir/base/settings.hpp"

#include "weir/base/ids.hpp"

#include <string>
#include <vector>

namespace weir::apps {

inline constexpr int kExitParentGone = 70;

struct RunnerOptions {
  RunnerId runner;
  std::string control_plane;  // its URL, or several with commas between
  std::string ca_file;        // authorities besides the system's, for https
  Secret api_key;
  Secret token;
  std::string token_file;     // where the token came from and is read again; "" none
  bool lifeline = false;  // it ends when its standard input does
  std::string folder;  // private; holds runner.lock, crash records, the list of cameras
};
Result<RunnerOptions> runner_options(const Settings& settings, const std::string& token_file);

// The exit code: the manager's, or 1 where it was killed.
Result<int> run_parent(const Settings& settings, const RunnerOptions& options);

}  // namespace weir::apps
