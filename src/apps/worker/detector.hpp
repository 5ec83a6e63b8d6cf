// `weir-worker detector`: a detection worker of a detector cluster, from its settings to its clean end.
//
// One thread's loop speaks with the master and looks after the subscriptions; cameras and detectors have threads of
// their own, as in a shard. Nothing of it depends on a control plane or a lease: the master answers for what it
// publishes. It ends on SIGTERM and SIGINT: the connections are closed with 1001, the cameras stop, exit 0; a camera's
// thread that hangs is left behind with 40. Main thread only.
#pragma once

#include "common/command.hpp"

namespace weir::apps {

Command detector_command();

}  // namespace weir::apps
