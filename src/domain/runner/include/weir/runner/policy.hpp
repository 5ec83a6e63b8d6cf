// Policy: the numbers by which the brain decides. The settings give them; the operator and the control plane may change
// some while it runs (FlagsHeard, TimesChanged). Plain value; any thread.
#pragma once

#include "weir/lease/holder.hpp"
#include "weir/restart/crash_loop.hpp"
#include "weir/restart/supervised.hpp"
#include "weir/rollout/rollout.hpp"

#include <algorithm>

namespace weir::runner {

struct Policy {
  lease::HolderPolicy lease = {};
  rollout::Mode rollout = rollout::Mode::live;
  rollout::Policy rollout_times = {};
  restart::CrashPolicy crashes = {};
  int capacity = 40;              // cameras; the control plane's word beats it
  int shard_size = 12;            // cameras a worker
  int quorum_pct = 80;            // of the cameras that blue delivers, green must deliver as many
  int workers_max = 4;            // shards, those of cameras that must be alone not counted; 0: no bound
  Duration start_grace = 30s;     // until a new worker must have answered
  int failed_starts = 3;          // in a row: no worker starts on this machine
  Duration silence_limit = 20s;   // a worker that has not answered for this long is ended
  Duration frozen_after = 2500ms; // one that has used no processor time meanwhile: for this long
  Duration stall = 4s;            // a worker's threads give up a camera that sends nothing for this long
  Duration overload_after = 10s;  // cameras that are looked at too seldom for this long: the runner takes no more
  Duration poll = 10s;            // a camera that another runner has is asked for again about this often
  int drain_batch = 4;
  Duration drain_interval = 1s;
  Duration pickup_limit = 10s;    // how long a drained batch is waited for, where others have room
  int unreachable_after = 3;      // failed dials with a cause on this side
  bool spare = true;              // one idle worker is kept ready
  // Cameras that it may hold.
  int room() const { return workers_max == 0 ? capacity : std::min(capacity, shard_size * workers_max); }
  restart::Supervision supervision() const {
    return {.start_grace = start_grace, .drain_grace = rollout_times.drain_within, .silence_limit = silence_limit,
            .frozen_after = frozen_after};
  }
};

}  // namespace weir::runner
