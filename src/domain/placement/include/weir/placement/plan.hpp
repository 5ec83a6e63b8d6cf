// Plan: which worker gets which subscription next; one value for all subscriptions.
//
// Each subscription without a place goes to the online worker with the lowest score that has room; what it adds to that
// worker's load, the next one sees. Those that lost their worker come first, then new ones, then those that a worker
// did not run; within each, by name. A worker that reports a subscription without a place gets it (`Why::adopted`), so
// that a new master disturbs nothing. A subscription that runs well is moved only when that betters its score by more
// than the policy's gain, after a cooldown, and few at a time. `plan` answers the difference only: after `apply`,
// planning again at the same time answers an empty plan. The same world gives the same plan. Pure functions; any
// thread.
#pragma once

#include "weir/placement/world.hpp"

#include <string_view>

namespace weir::placement {

// 0.4 load in percent of the capacity + 0.35 CPU + 0.25 memory. Lower is better; equal scores go by URL.
double score(double load_percent, std::optional<double> cpu_percent, std::optional<double> memory_percent);

enum class Why {
  added,     // nobody had it
  adopted,   // no worker had it by the assignments, but this one reports that it runs it
  changed,   // its row, its camera or its model changed
  orphaned,  // its worker is offline, or none of the cluster's any more
  retried,   // its worker did not run it
  crowded,   // its worker has more subscriptions than its capacity
};
std::string_view name_of(Why why);

// `from` is the worker that had the subscription, where there was one. It is told first that it has it no longer,
// unless it is the worker that gets it.
struct Assign {
  std::string subscription, from, worker;
  Why why = Why::added;
  friend bool operator==(const Assign&, const Assign&) = default;
};
// A subscription that runs well, to a better place.
struct Move {
  std::string subscription, from, worker;
  double gain = 0;  // points of score
  friend bool operator==(const Move&, const Move&) = default;
};
// Nobody wants the subscription any more; `worker` is "" where none had it.
struct Drop {
  std::string subscription, worker;
  friend bool operator==(const Drop&, const Drop&) = default;
};
struct Fail {
  std::string subscription, from, reason;
  friend bool operator==(const Fail&, const Fail&) = default;
};
// Listed where it begins to wait, or waits for another reason than before.
struct Wait {
  std::string subscription, from, reason;
  Status status = Status::pending;  // or recovering
  friend bool operator==(const Wait&, const Wait&) = default;
};

struct Plan {
  std::vector<Drop> drop = {};
  std::vector<Assign> assign = {};
  std::vector<Move> move = {};
  std::vector<Fail> fail = {};
  std::vector<Wait> wait = {};
  bool empty() const { return drop.empty() && assign.empty() && move.empty() && fail.empty() && wait.empty(); }
  friend bool operator==(const Plan&, const Plan&) = default;
};

Plan plan(const World& world, Instant now, const Policy& policy);

// Only what online workers report and nobody has: they keep it. For a master that does not know yet what all workers run,
// and must neither give anything twice nor let what runs go unheard meanwhile.
Plan adopt(const World& world, Instant now, const Policy& policy);

// Records the plan in the world's assignments, as it is carried out.
void apply(World& world, const Plan& plan, Instant now);

}  // namespace weir::placement
