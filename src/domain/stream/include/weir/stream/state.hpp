// State: everything that the machine knows of one published stream. Facts, as events told them; what follows from them
// is decided by `step` (machine.hpp). Plain values; one thread.
#pragma once

#include "weir/restart/restart_window.hpp"
#include "weir/stream/events.hpp"

namespace weir::stream {

struct Publisher {
  bool live = false;
  Source source = {};                        // the last one; kept over the grace
  std::optional<Instant> gone_since = {};    // the grace runs from here, while a session is open or ordered to stop
  Instant heard_at{};                        // when a hook spoke last
};

enum class Holding {
  none,
  unsure,     // recalled: it may be ours since before this process
  asking,
  held,
  releasing,
};
struct StreamLease {
  Holding holding = Holding::none;
  lease::Version version{};
  bool fresh_asked = false;                  // a rotation is under way
  std::optional<Instant> silent_since = {};  // the control plane does not answer
  std::string blocked = {};                  // who has it instead, where another has

  // Whether a child may be started.
  bool sure() const { return holding == Holding::held && !silent_since; }
};

enum class Life {
  none,      // no process
  starting,  // ordered, not heard of yet
  running,
  stopping,  // asked to end
  killed,
};
struct LastExit {
  std::optional<int> code = {};
  Instant at{};
};
struct Child {
  Life life = Life::none;
  std::string instance = {};
  Instant since{};                 // in this life
  Instant started{};
  lease::Version given{};          // the highest version that a process of this role was given: no other may have it
  bool replace = false;            // ordered anew: ended, and started again uncounted
  restart::RestartWindow window = {};
  std::optional<LastExit> last_exit = {};
  std::string problem = {};        // why it is not tried any more, or why it ended last

  bool alive() const { return life != Life::none; }
  bool ending() const { return life == Life::stopping || life == Life::killed; }
};

struct Orders {
  bool stopped = false;
  std::optional<bool> forward = {};
  friend bool operator==(const Orders&, const Orders&) = default;
};

struct State {
  StreamId id = {};
  Phase phase = Phase::idle;
  Instant since{};                 // in this phase
  std::string run_id = {};         // of the session; "" where none is open
  Instant session_since{};
  Publisher publisher = {};
  StreamLease lease = {};
  Child worker = {}, forwarder = {};
  bool out_live = false;
  Instant out_heard_at{};          // looks of before do not count: a worker has started or ended since
  std::string out_id = {};         // the connection that published it when somebody looked last
  std::string foreign_out = {};    // the one that did when this worker was started: an earlier worker's, which the owner
                                   // before this one may keep until this worker's own takes its place
  Settings settings = {};
  WorkerSettings worker_settings = {};  // that the running worker was started with
  Secret forward_to = {};               // where the running forwarder sends
  Orders orders = {};
  std::string degraded = {};       // why no worker is started any more, in words for a person
  std::string last_error = {};
  bool surveyed = true;            // the shell has said which children live; false after `recall`

  bool session() const { return !run_id.empty(); }
  // What ought to run, whatever hinders it now.
  bool want_worker() const { return session() && phase != Phase::stopping && degraded.empty(); }
  bool forwarding() const { return orders.forward.value_or(settings.forward) && !settings.destination.empty(); }
  bool want_forwarder() const { return session() && phase != Phase::stopping && forwarding(); }
  // Whether what a child of this role needs is there, apart from the lease and its own delay.
  bool ready_for(Role role) const {
    return role == Role::worker ? want_worker() && publisher.live
                                : want_forwarder() && worker.life == Life::running && out_live;
  }
  Child& child(Role role) { return role == Role::worker ? worker : forwarder; }
  const Child& child(Role role) const { return role == Role::worker ? worker : forwarder; }
};

}  // namespace weir::stream
