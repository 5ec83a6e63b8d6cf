// Faults: what may go wrong in one seed. Each kind is in about half of the seeds, so that some runs see only one.
#pragma once

#include "network.hpp"

namespace weir::sim {

struct Faults : NetworkFaults {
  bool cuts, kills, worker_kills, pauses, clock_rates;
  bool store_stalls, store_outages, store_steps, failovers, unauthorized, late_bytes, blocking;
  bool unreachable, revocations, drains, rollouts, twin_runner, poison, disabled, host_steps;
  bool store_only;

  explicit Faults(Rng& rng) {
    for (bool* each : {&loss, &delay, &duplication, &cuts, &kills, &worker_kills, &pauses, &clock_rates, &store_stalls,
                       &store_outages, &store_steps, &unauthorized, &late_bytes, &blocking, &unreachable, &revocations,
                       &drains, &rollouts, &twin_runner, &poison, &disabled, &host_steps})
      *each = rng.chance(0.4);
    failovers = rng.chance(0.2);
    // Sometimes only the store has trouble: then nothing may move but from one worker of a runner to another.
    store_only = rng.chance(0.15);
    if (store_only) {
      loss = delay = duplication = cuts = kills = worker_kills = pauses = unauthorized = unreachable = false;
      revocations = drains = twin_runner = poison = disabled = failovers = false;
      store_outages = true;
    }
  }
};

}  // namespace weir::sim
