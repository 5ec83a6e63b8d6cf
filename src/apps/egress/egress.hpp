// `weir-egress`: a forwarder from its settings to its exit code.
//
// One thread forwards (forwarder.hpp); while there is nowhere to forward to, another reads the hub (intake.hpp). The main
// one hears signals, the supervisor's socket and the metrics endpoint. SIGTERM or SIGINT end it with 0 within five seconds,
// whatever hangs. Main thread only.
#pragma once

#include "../command.hpp"

namespace weir::apps {

Command egress_command();
// Says why nothing was begun, in the log's form, and answers with the exit code.
int refuse_egress(const Error& error);

}  // namespace weir::apps
