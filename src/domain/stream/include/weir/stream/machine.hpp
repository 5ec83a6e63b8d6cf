// The machine of one published stream: who publishes, who holds the lease, which children live → what is done next.
//
//   idle ──a publisher──▶ starting ◀──worker ends / runs──▶ running
//   starting, running ──publisher away for longer than the grace, or an operator's stop──▶ stopping
//   stopping ──forwarder, then worker, then lease given up──▶ stopped ──▶ idle
//
// An event changes facts; then one function compares what is wanted with what is there and says what is missing. So
// every event has a meaning in every phase, and an event that comes twice, late or never does no harm.
//
// The session. The first ready of a publisher opens it under a new run id; the publisher's end begins a grace, within
// which any publisher continues the session: same run, same worker. The end of a publisher that is known to be another
// than the present one is ignored. Once stopping has begun it is completed; a publisher who is there then gets a new
// session.
//
// Children. One worker and one forwarder at most, each start under a new instance id. A successor starts only after
// its predecessor's end was heard. The forwarder needs a running worker and `out`; whatever happens to it, the worker
// is not touched. Changed settings reach the forwarder at once and the worker with its next start, because a restart
// would interrupt everybody who watches `out`.
//
// Versions. Worker and forwarder share the stream's lease, and a version is given to at most one process of each role:
// only the worker stamps events, only the forwarder sends to the destination, so these two cannot be taken for one
// another. The first worker and the first forwarder of a grant use its version; every later start waits for a rotation
// (NeedFreshVersion). The shell tells a rotated version to the sibling that runs with its next extension, so the
// machine counts it as given to that sibling too.
//
// Silence of the control plane. While it lasts nothing is started; after `outage_grace` the children are killed. When
// the lease is lost, they are killed at once.
//
// Pure: no clock, no randomness, no I/O. One thread a stream.
#pragma once

#include "weir/stream/state.hpp"

namespace weir::stream {

struct Policy {
  Duration disconnect_grace = 10s;
  Duration outage_grace = 300s;
  Duration stop_grace = 15s;  // a child that was asked to end and has not by then is killed
  restart::WindowPolicy worker = {};
  restart::WindowPolicy forwarder = {.when_full = restart::WhenFull::cool_down};
  friend bool operator==(const Policy&, const Policy&) = default;
};

// What a step may need of chance: a number uniform in [0, 1), and an id that was never used. The run id is that id, the
// instance ids are made of it.
struct Draw {
  double jitter = 0;
  std::string id;
};

struct Step {
  State next;
  std::vector<Action> actions;
};
Step step(State state, const Event& event, Instant now, const Policy& policy, const Draw& draw);

// When TimePassed is due next; nothing where only an event can change anything.
std::optional<Instant> wake_at(const State& state, const Policy& policy);

}  // namespace weir::stream
