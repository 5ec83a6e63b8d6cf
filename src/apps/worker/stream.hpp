// `weir-worker stream`: makes live/<id>/out of live/<id>/in on a hub, from its settings to its exit code.
//
// In passthrough it is a forwarder whose destination is the hub; annotating, what it forwards has been decoded, drawn
// into and encoded again on the way. forward_process.hpp says how it lives and ends. Its right to publish that nobody
// extended ends it with 60. Main thread only.
#pragma once

#include "common/command.hpp"

namespace weir::apps {

Command stream_command();
// Logs why the worker did not start, and answers with the exit code.
int refuse_stream(const Error& error);

}  // namespace weir::apps
