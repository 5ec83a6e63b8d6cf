// Camera: one camera as its runner sees it: what is wanted of it, the right to it, and which process publishes
// ("speaks") for it.
//
// The four parts are changed by different parts of the brain: the lease by Leases, the payment by the brain's own step,
// the voice by the functions of voices.hpp, the reach by what its worker and the store tell. Plain values. One thread.
#pragma once

#include "weir/runner/payment.hpp"

namespace weir::runner {

// The camera's lease, and what this runner heard about it from elsewhere than the store.
struct Lease {
  lease::HolderState holder = {};
  std::optional<lease::Speak> right = {};  // `fresh` until a process was given its version
  WallTime granted_at{};                   // up to here others may have spoken
  Instant answered_at{};                   // by the store, last
  Instant try_at{};                        // not asked for before
  lease::Version news = {};                // of the last news that the camera is free, until the store was asked
  bool elsewhere = false;                  // another runner has it, as far as was heard
  bool fresh() const { return right && right->fresh; }
  // Whether the store answers about this lease; while it does not, no worker can be given a fresh version.
  bool answered() const { return holder.failures == 0; }
};

// The process that speaks for the camera, and the message to it that is under way: at most one.
struct Voice {
  WorkerNumber on = 0;                        // 0: nobody speaks
  Instant told_until{};                       // the end of its right as it was told
  std::uint64_t busy = 0;                     // the message under way; 0: none
  Instant retry_at{};                         // no next message before
  std::optional<Instant> silence_asked = {};  // it may speak until it has confirmed that it does not
  std::optional<WallTime> after = {};         // the next one says nothing that was captured up to here
  std::optional<Instant> handed_over = {};    // since when its one connection is on its way to another worker
  int missed = 0;                             // looks at its worker that did not show it
  bool lost = false;                          // the lease is another's: the process must be told
  bool joined = false;                        // a worker has had it under the present grant
  void stopped() { on = 0, lost = false, silence_asked.reset(); }
};

// Whether its pictures arrive here, or another runner should try.
struct Reach {
  bool letting_go = false;  // cannot be reached from here
  bool streamed = false;    // under the present grant
  int gave_up = 0;          // times that no other runner could take it
  Instant try_until{};      // it is not given up before
};

struct Camera {
  Wish wish;
  bool desired = false;
  Lease lease = {};
  Payment payment = {};
  Voice voice = {};
  Reach reach = {};
  bool leaving = false;       // drained away
  bool few_sessions = false;  // it refused a second connection
  int crashes = 0;            // of workers, that this runner saw

  const CameraId& id() const { return lease.holder.subject; }
  bool idle() const { return lease.holder.phase == lease::Phase::idle; }
  bool holding() const { return lease.holder.phase == lease::Phase::holding; }
  bool wanted() const { return desired && !leaving; }
  // A worker of this runner should speak for it.
  bool may_speak() const { return wanted() && !reach.letting_go && !voice.lost && lease.right && holding(); }
  bool alone() const { return std::max(crashes, wish.crashes) >= 2; }
  bool few() const { return few_sessions || wish.config.max_sessions.value_or(2) < 2; }
  // Nothing speaks for it and nothing is under way.
  bool at_rest() const { return voice.on == 0 && voice.busy == 0; }
};

using Cameras = std::map<CameraId, Camera>;

// Null where the map does not have it.
template <class Map>
auto* find_in(Map& map, const typename Map::key_type& key) {
  auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

}  // namespace weir::runner
