// The bodies of the runner routes. A heartbeat is kept and shown to readers, so only its known fields survive; `metrics`
// alone may hold what the runner likes.
// Plain values and functions.
#pragma once

#include "weir/base/json.hpp"
#include "weir/base/secret.hpp"
#include "weir/ports/runners.hpp"

namespace weir::control_plane {

Result<Runner> read_registration(const json::value& body);

struct Heartbeat {
  RunnerId runner = {};  // empty: not said
  BootId boot = {};      // of a runner that registered this boot
  int streams_owned = 0;
  bool draining = false;
  json::object kept = {};
};
Result<Heartbeat> read_heartbeat(const json::value& body);

Result<RunnerChange> read_runner_change(const json::value& body);

struct Will {
  BootId boot;
  Secret secret;  // empty: not in the body
};
Result<Will> read_will(const json::value& body);

}  // namespace weir::control_plane
