// `weir-worker shard`: a worker from its configuration to its clean end.
//
// Two threads speak to the world: the loop answers the local endpoints and looks after the cameras, the publisher's
// thread owns the bus and the spool. It ends on SIGTERM, SIGINT or /drain (cameras stop, events are confirmed or kept on
// disk, exit 0), at once on /terminate, with 60 when every camera was lost to others and with 70 when its parent is gone.
// A drain that takes longer than its grace ends the process all the same. Main thread only.
#pragma once

#include "../command.hpp"

namespace weir::apps {

// Exit codes of workers.
inline constexpr int kExitConfiguration = 10;
inline constexpr int kExitInternal = 50;
inline constexpr int kExitLeaseLost = 60;
inline constexpr int kExitParentGone = 70;

Command shard_command();

}  // namespace weir::apps
