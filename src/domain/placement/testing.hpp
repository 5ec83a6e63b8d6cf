// World builder: short ways to write the worlds that the tests of this folder plan for. Tests only; one thread.
#pragma once

#include "weir/placement/plan.hpp"

#include <fmt/format.h>

namespace weir::placement::testing {

inline const Instant kNow{1000s};

inline std::string url(int n) { return fmt::format("ws://w{:03}", n); }
inline std::string name(int n) { return fmt::format("d{:05};c{:05}", n, n); }

inline World world_of(int workers, int subscriptions, int capacity = 100) {
  World world;
  for (int n = 0; n < workers; ++n) world.workers[url(n)] = {.online = true, .capacity = capacity};
  for (int n = 0; n < subscriptions; ++n) world.desired[name(n)] = {.revision = 1};
  return world;
}

inline Plan planned(World& world, Instant now = kNow, const Policy& policy = {}) {
  Plan made = plan(world, now, policy);
  apply(world, made, now);
  return made;
}

inline void confirm_all(World& world, Instant now = kNow) {
  for (auto& [id, assignment] : world.assignments) confirm(world, id, now);
}

inline int load_of(const World& world, const std::string& worker) {
  int load = 0;
  for (const auto& [id, assignment] : world.assignments) load += assignment.worker == worker ? 1 : 0;
  return load;
}

}  // namespace weir::placement::testing
