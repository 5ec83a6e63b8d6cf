// cluster_bench: what the decisions of the detector cluster cost, without sockets.
//
//   cluster_bench [--json]
//
// Placement: 10,000 subscriptions on 200 workers from nothing, and the next plan after ten changes. Master: what 200 workers with 100 subscriptions each cost it in two seconds, in
// which every worker reports its state once and every connection's record is written; and what one detection costs on
// its way from a worker to Redis. Each figure is the median of many runs, in milliseconds of processor time.
#include "weir/base/json.hpp"
#include "weir/cluster/announcement.hpp"
#include "weir/cluster/link.hpp"
#include "weir/cluster/records.hpp"
#include "weir/cluster/report.hpp"
#include "weir/cluster/subscription.hpp"
#include "weir/placement/plan.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>

namespace weir::bench {

namespace {

constexpr int kWorkers = 200, kSubscriptions = 10'000, kRuns = 31;

// Of this thread: what others do on the machine meanwhile does not count.
double cpu_ms() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) * 1e3 + static_cast<double>(used.tv_nsec) / 1e6;
}

double median_ms(const std::function<void()>& prepare, const std::function<void()>& work) {
  std::vector<double> took;
  for (int run = 0; run < kRuns; ++run) {
    prepare();
    double begin = cpu_ms();
    work();
    took.push_back(cpu_ms() - begin);
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

// A master with workers that run what it gave to them.
struct Master {
  static constexpr int kEach = 100;

  Master() {
    for (int w = 0; w < kWorkers; ++w) {
      std::string url = worker_url(w);
      cluster::StateReport report{.cpu_percent = 10, .memory_percent = 20};
      for (int n = w * kEach; n < (w + 1) * kEach; ++n) {
        std::string id = subscription(n);
        desired[id] = {.id = *cluster::Identifier::parse(id), .model_id = 1};
        world.assignments[id] = {.worker = url, .status = placement::Status::active};
        given[url].insert(id);
        report.cameras.push_back({.subscription = desired[id].id, .model_id = 1, .model_name = "vehicles"});
      }
      texts[url] = json::to_text(cluster::write_message(report));
      links[url] = {.state = cluster::LinkState::online, .socket = cluster::Link::Socket::open, .due = now + 10s};
    }
  }

  size_t hear_every_worker_once() {
    size_t confirmed = 0;
    for (const auto& [url, text] : texts) {
      auto message = cluster::read_message(text, WallTime(1h));
      links[url] = cluster::step(links[url], cluster::Reported{}, now, 0, {}).next;
      const auto& report = std::get<cluster::StateReport>(*message);
      auto judged = cluster::judge_report(url, report, world, desired, given[url], now);
      for (const std::string& id : judged.confirmed) confirmed += placement::confirm(world, id, now) ? 1 : 0;
      cluster::WorkerConnectionState state{.url = url, .process = "bench", .online = true,
                                           .subscriptions = judged.confirmed};
      written += cluster::write_record(state).size();
    }
    return confirmed;
  }
  bool route(std::string_view text, const std::string& worker) {
    auto message = cluster::read_message(text, WallTime(1h));
    const auto& detection = std::get<cluster::ImageDetection>(*message);
    if (cluster::judge_result(worker, detection.subscription.text(), world) != cluster::ResultVerdict::accepted)
      return false;
    cluster::Announcement announcement{.epoch = 7, .what = cluster::DetectionRouted{worker, detection}};
    written += cluster::write_announcement(announcement).size();
    return true;
  }

  Instant now{1h};
  placement::World world;
  cluster::DesiredSubscriptions desired;
  std::map<std::string, std::set<std::string>> given;
  std::map<std::string, std::string> texts;
  std::map<std::string, cluster::Link> links;
  size_t written = 0;
};

json::object master_costs() {
  Master master;
  size_t confirmed = 0, routed = 0;
  double reports = median_ms([] {}, [&] { confirmed = master.hear_every_worker_once(); });
  cluster::ImageDetection detection{.subscription = *cluster::Identifier::parse(subscription(5)),
                                    .detection = {.car_brand = "Fiat", .license_plate_text = "AB 123"},
                                    .model_id = 1, .model_name = "vehicles"};
  std::string text = json::to_text(cluster::write_message(detection));
  double detections = median_ms([] {}, [&] {
    for (int n = 0; n < 1000; ++n) routed += master.route(text, worker_url(0)) ? 1 : 0;
  });
  return {{"master_subscriptions_confirmed", confirmed},
          {"master_reports_of_two_seconds_ms", reports},
          {"master_detections_routed", routed / kRuns},
          {"master_thousand_detections_ms", detections}};
}

}  // namespace

int run(const std::vector<std::string_view>& words) {
  bool as_json = words.size() == 1 && words[0] == "--json";
  if (!words.empty() && !as_json) return std::fprintf(stderr, "usage: cluster_bench [--json]\n"), 2;
  json::object measures = placement_costs();
  for (const auto& [name, value] : master_costs()) measures[name] = value;
  if (as_json) std::puts(json::to_text(measures).c_str());
  else
    for (const auto& [name, value] : measures)
      std::puts(fmt::format("{:36} {}", std::string(name), json::to_text(value)).c_str());
  return 0;
}

}  // namespace weir::bench

int main(int count, char** words) { return weir::bench::run({words + 1, words + count}); }
