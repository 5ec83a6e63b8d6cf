// World: runners, workers, a network, a store and everything that can go wrong with them, in one thread, from one seed.
//
// The runners' manager with its brain, the workers' publisher and spool, the ledger, lease time and the buckets are the
// product's own code; the world around them is made up. First everything is allowed to fail; then the faults stop, and
// within a bounded time every camera that some runner can reach must be streaming again.
#pragma once

#include "checks.hpp"
#include "rng.hpp"

#include "weir/lease/holder.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <queue>

namespace weir::sim {

struct Options {
  std::uint64_t seed = 1;
  Planted planted = Planted::none;
  bool sqlite = false;
  bool trace = false;
  bool streams = false;   // in every world
  bool clusters = false;  // the same
};

struct Outcome {
  std::optional<Violation> violation;
  std::uint64_t hash = 0;     // of everything that happened, in order
  std::uint64_t events = 0;
  double rest = 0;            // seconds from the end of the faults until everything streamed again
};

Outcome run(const Options& options);

}  // namespace weir::sim
