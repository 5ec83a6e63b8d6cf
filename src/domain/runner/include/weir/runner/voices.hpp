// Voices: how the one process that publishes ("speaks") for a camera is changed ("Blue confirms before green speaks"
// in docs/lease-protocol.md).
//
// Whoever is to fall silent must confirm it, or have ended, before another is given a fresh version; until then it
// counts as the speaker. A message whose answer was lost may have arrived, so it is treated as if it had. Each camera
// has at most one message under way, whose number is its `busy`. Functions over the fleet, pure; one thread.
#pragma once

#include "weir/runner/workers.hpp"

namespace weir::runner {

// A new version for a worker that is to speak; the same one where the worker speaks already and only has to change.
void hand_over(Camera& camera, WorkerNumber to, Fleet& fleet, Turn& turn);
// Asks the worker that speaks for it to stop: by `remove`, `silence` or `lose`.
void take_away(Camera& camera, Message how, Fleet& fleet, Turn& turn);
// Takes the camera from a worker that stands by with it. False where there is none.
bool take_from_standby(Camera& camera, Fleet& fleet, Turn& turn);
// Tells each worker the ends of its rights that have moved.
void extend_rights(Fleet& fleet, Turn& turn);

// A worker has answered a message, or the message may or may not have arrived.
void hear_told(const Told& event, Fleet& fleet, Turn& turn);
// A worker has ended and speaks for nothing any more.
void forget_worker(WorkerNumber worker, const std::map<std::uint64_t, Sent>& unanswered, Cameras& cameras);
// A message that was given up may still have arrived, and one that arrived may have met a worker that forgot it: what a
// worker has and nobody meant it to have is taken away, or it would keep a connection to the camera for nothing; what
// it should have and does not is given to it again.
void compare_with(const WorkerHeard& event, Fleet& fleet, Turn& turn);

}  // namespace weir::runner
