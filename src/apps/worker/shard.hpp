// `weir-worker shard`: a worker from its configuration to its clean end.
//
// Two threads talk to other processes: the loop answers the local endpoints and looks after the cameras, the
// publisher's thread owns the bus and the spool. It ends on SIGTERM, SIGINT or /drain (cameras stop, events are
// confirmed or kept on disk, exit 0), at once on /terminate, with 60 when the leases of all its cameras are gone,
// with 70 when its parent is. A drain that takes longer than its grace ends the process all the same, with 50; a
// camera's thread that hangs, in a name lookup, is left behind with 40. Main thread only.
#pragma once

#include "common/command.hpp"

namespace weir::apps {

// Exit codes of workers. There is no 20, "input not ready": a worker waits for its cameras, however long they take.
inline constexpr int kExitConfiguration = 10;  // the same settings and files will fail again
inline constexpr int kExitTransient = 40;      // a later start may succeed: a full disk, no free port, too few threads
inline constexpr int kExitInternal = 50;
inline constexpr int kExitLeaseLost = 60;
inline constexpr int kExitParentGone = 70;

Command shard_command();
// The exit code for the error that kept a shard from starting.
int shard_exit_code(const Error& error);

}  // namespace weir::apps
