// Faults: what may go wrong in one seed. Each kind is in about half of the seeds, so that some runs see only one.
#pragma once

#include "rng.hpp"

namespace weir::sim {

struct Faults {
  bool loss, delay, duplication, cuts, kills, worker_kills, pauses, clock_rates;
  bool store_stalls, store_outages, store_steps, failovers, unauthorized, late_bytes, blocking;
  bool unreachable, revocations, drains, rollouts, twin_runner;

  explicit Faults(Rng& rng) {
    for (bool* each : {&loss, &delay, &duplication, &cuts, &kills, &worker_kills, &pauses, &clock_rates, &store_stalls,
                       &store_outages, &store_steps, &unauthorized, &late_bytes, &blocking, &unreachable, &revocations,
                       &drains, &rollouts, &twin_runner})
      *each = rng.chance(0.4);
    failovers = rng.chance(0.2);
    // Sometimes only the store has trouble: then nothing may move.
    if (rng.chance(0.15)) {
      loss = delay = duplication = cuts = kills = worker_kills = pauses = unauthorized = unreachable = false;
      revocations = drains = rollouts = twin_runner = failovers = false;
      store_outages = true;
    }
  }
};

}  // namespace weir::sim
