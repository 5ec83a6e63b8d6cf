// cluster_bench: what the decisions of the detector cluster cost, without sockets.
//
//   cluster_bench [--json]
//
// Placement: 10,000 subscriptions on 200 workers from nothing, and the next plan after ten changes. Each figure is the
// median of many runs, in milliseconds of one core.
#include "weir/base/clock.hpp"
#include "weir/base/json.hpp"
#include "weir/placement/plan.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>

namespace weir::bench {

namespace {

constexpr int kWorkers = 200, kSubscriptions = 10'000, kRuns = 31;

double median_ms(const std::function<void()>& prepare, const std::function<void()>& work) {
  std::vector<double> took;
  for (int run = 0; run < kRuns; ++run) {
    prepare();
    Instant begin = boot_now();
    work();
    took.push_back(seconds(boot_now() - begin) * 1e3);
  }
  std::ranges::sort(took);
  return took[took.size() / 2];
}

std::string worker_url(int n) { return fmt::format("ws://worker-{:03}:8000", n); }
std::string subscription(int n) { return fmt::format("display-{:05};camera-{:05}", n, n % 3000); }

placement::World world_of(int workers, int subscriptions) {
  placement::World world;
  for (int n = 0; n < workers; ++n) {
    placement::Worker& worker = world.workers[worker_url(n)];
    worker.online = true;
    worker.cpu_percent = n % 37;
    worker.memory_percent = n % 23;
  }
  for (int n = 0; n < subscriptions; ++n) world.desired[subscription(n)].revision = 1;
  return world;
}

// Plans and says whether every subscription that was wanted has a worker.
size_t planned(placement::World& world, Instant now) {
  placement::Plan made = placement::plan(world, now, {});
  placement::apply(world, made, now);
  return made.assign.size();
}

void ten_changes(placement::World& world) {
  for (int n = 0; n < 4; ++n) world.desired.erase(subscription(n * 100));
  for (int n = 0; n < 4; ++n) world.desired[subscription(kSubscriptions + n)].revision = 1;
  world.desired[subscription(500)].revision = 2;
  world.workers[worker_url(17)].online = false;
}

json::object placement_costs() {
  const Instant now{1h};
  placement::World empty = world_of(kWorkers, kSubscriptions), world;
  size_t assigned = 0;
  double from_nothing = median_ms([&] { world = empty; }, [&] { assigned = planned(world, now); });
  for (const auto& [id, assignment] : world.assignments) placement::confirm(world, id, now);
  for (auto& [url, worker] : world.workers)
    for (const auto& [id, assignment] : world.assignments)
      if (assignment.worker == url) worker.reported.push_back(id);
  placement::World full = world;
  size_t reassigned = 0;
  double changed = median_ms(
      [&] {
        world = full;
        ten_changes(world);
      },
      [&] { reassigned = planned(world, now + 30s); });
  double unchanged = median_ms([&] { world = full; }, [&] { planned(world, now + 30s); });
  return {{"placement_workers", kWorkers},
          {"placement_subscriptions", assigned},
          {"placement_from_nothing_ms", from_nothing},
          {"placement_ten_changes_ms", changed},
          {"placement_ten_changes_assigned", reassigned},
          {"placement_unchanged_ms", unchanged}};
}

}  // namespace

int run(const std::vector<std::string_view>& words) {
  bool as_json = words.size() == 1 && words[0] == "--json";
  if (!words.empty() && !as_json) return std::fprintf(stderr, "usage: cluster_bench [--json]\n"), 2;
  json::object measures = placement_costs();
  if (as_json) std::puts(json::to_text(measures).c_str());
  else
    for (const auto& [name, value] : measures)
      std::puts(fmt::format("{:36} {}", std::string(name), json::to_text(value)).c_str());
  return 0;
}

}  // namespace weir::bench

int main(int count, char** words) { return weir::bench::run({words + 1, words + count}); }
