// `weir up`: all of Weir on one machine, from one folder.
//
// The control plane on SQLite, a worker on every camera, and with --demo simulated cameras; a table of what they see on
// a terminal, plain lines elsewhere. Plain values; main thread only.
#pragma once

#include "common/command.hpp"

#include "weir/base/secret.hpp"

namespace weir::apps {

// The store in the state folder.
Secret embedded_store(const Settings& settings);

Command up_command();

}  // namespace weir::apps
