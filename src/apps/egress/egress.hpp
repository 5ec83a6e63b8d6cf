// `weir-egress`: a forwarder from its settings to its exit code (forward_process.hpp says how it lives and ends).
// Main thread only.
#pragma once

#include "common/command.hpp"

namespace weir::apps {

Command egress_command();
// Logs why the forwarder did not start, and answers with the exit code.
int refuse_egress(const Error& error);

}  // namespace weir::apps
