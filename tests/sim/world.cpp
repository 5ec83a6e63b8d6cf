// Setting the world up, breaking it, its network, and the run from the first event to the verdict.
#include "clusters.hpp"
#include "parts.hpp"
#include "streams.hpp"

namespace weir::sim {

World::World(const Options& options)
    : Timeline(options.trace), options_(options), rng_(options.seed), faults_(rng_) {
  if (options.planted == Planted::never_lets_go) faults_.unreachable = true;
  if (options.sqlite) faults_.failovers = false;
  store_rate_ = faults_.clock_rates ? 0.95 + 0.1 * rng_.unit() : 1.0;
  SimStoreConfig config;
  int cameras = 2 + rng_.below(4);
  for (int n = 0; n < cameras; ++n) cameras_.push_back(CameraId::trusted(fmt::format("c{}", n)));
  config.cameras = cameras_;
  config.site = site_;
  config.bucket_capacity = kBucketCapacity;
  config.bucket_refill_per_min = kBucketRefill;
  config.planted = options.planted;
  auto clock = [this] { return store_clock(); };
  store_ = options.sqlite ? make_sqlite_store(clock, config) : make_fake_store(clock, config);
  checks_ = std::make_unique<Checks>(*store_);
  policy_.spare = rng_.chance(0.5);
  policy_.shard_size = 1 + rng_.below(4);
  policy_.workers_max = 8;
  policy_.poll = 3s;
  policy_.rollout = rng_.chance(0.3) ? rollout::Mode::bluegreen : rollout::Mode::live;
  policy_.rollout_times.ready_within = 8s;
  policy_.silence_limit = 20s;
  policy_.crashes.backoff = {.first = 200ms, .cap = 5s};
  policy_.crashes.most = 1000;  // the world crashes workers far more often than a window allows
  policy_.drain_batch = 2;
  make_nodes();
  Surroundings around{*this, *store_, *checks_, troubles_, [this] { remember_commits(); }};
  if (StreamWorld::exists(options)) neighbours_.push_back(std::make_unique<StreamWorld>(options, around));
  if (ClusterWorld::exists(options)) neighbours_.push_back(std::make_unique<ClusterWorld>(options, around));
}

World::~World() {
  for (auto& node : nodes_)
    if (node->manager) die(*node->manager);
  forget_paused();
}

void World::make_nodes() {
  int count = 2 + rng_.below(3);
  bool twin_of_first = faults_.twin_runner || options_.planted == Planted::duplicate_boot;
  for (int n = 0; n < count; ++n) {
    auto node = std::make_unique<Node>();
    node->index = n;
    node->look = node->disk.spool();
    // A twin is a host that was cloned with its runner_id.
    bool twin = twin_of_first && n == 1;
    node->runner = RunnerId::trusted(fmt::format("r{}", twin ? 0 : n));
    if (faults_.clock_rates) node->rate = 0.95 + 0.1 * rng_.unit();
    node->offset = Duration(rng_.below(1'000'000'000));
    node->reaches.assign(cameras_.size(), true);
    // A runner with another runner_id must be able to reach the camera: a twin does not count as another runner.
    if (faults_.unreachable && n == 0 && (count > 2 || !twin_of_first)) node->reaches[0] = false;
    nodes_.push_back(std::move(node));
  }
  for (auto& node : nodes_) in(rng_.between(0ms, 500ms), [this, n = node.get()] { start_manager(*n); });
}

// ---- faults ----

void World::schedule_faults() {
  troubles_.faults_end = 20 * kSecond + rng_.below(40) * kSecond;
  for (TrueTime t = 2 * kSecond; t < troubles_.faults_end; t += rng_.between(400ms, 4s).count()) at(t, [this] { fault(); });
  at(troubles_.faults_end, [this] { heal(); });
}

void World::kill_worker(Node& node) {
  auto m = node.manager;
  if (m->workers.empty()) return;
  auto victim = std::next(m->workers.begin(), rng_.below(static_cast<int>(m->workers.size())));
  end_worker(node, m, victim->first, 139);
}

void World::kill_runner(Node& node, bool last_will) {
  if (node.down) return;
  auto m = node.manager;
  trace("node {} is killed{}", node.index, last_will ? " and leaves its will" : "");
  die(*m);
  node.down = true;
  node.in_trouble_until(now());
  if (last_will) {
    auto parent = std::make_shared<Process>();
    for (int attempt = 0; attempt < 4; ++attempt)
      in(std::chrono::seconds(attempt), [this, &node, parent, owner = m->owner] {
        request(node, parent, [this, owner] {
          store_->release_all(owner);
          for (const CameraId& camera : cameras_)
            if (lease::LeaseRow row = store_->row(camera); row.owner == owner) announce(camera, true, owner.runner, row.version);
          return Reply([] {});
        }, [] {});
      });
  }
  in(rng_.between(500ms, 8s), [this, &node] {
    node.in_trouble_until(now());
    if (node.down) start_manager(node);
  });
}

void World::fault() {
  Node& node = *nodes_[static_cast<size_t>(rng_.below(static_cast<int>(nodes_.size())))];
  int camera = rng_.below(static_cast<int>(cameras_.size()));
  auto trouble = [&](Duration how_long) { node.in_trouble_until(now() + how_long.count()); };
  switch (rng_.below(16)) {
    case 0:
      if (faults_.cuts) {
        Duration d = rng_.between(1s, 20s);
        if (rng_.chance(0.7)) node.cut_out_until = now() + d.count();
        if (rng_.chance(0.7)) node.cut_in_until = now() + d.count();
        trouble(d);
        trace("node {} is cut off for {} ms", node.index, d / 1ms);
      }
      break;
    case 1:
      if (faults_.kills) kill_runner(node, rng_.chance(0.5));
      break;
    case 2:
      if (faults_.worker_kills && node.manager && !node.down) kill_worker(node);
      break;
    case 3:
      if (faults_.pauses && node.manager && !node.down) {
        Duration d = rng_.between(100ms, 30s);
        trouble(d + 1s);
        int which = rng_.below(3);
        trace("node {} is paused for {} ms ({})", node.index, d / 1ms, which);
        if (which != 1) pause(node.manager, d);
        if (which != 0)
          for (auto& [number, w] : node.manager->workers) pause(w, d);
      }
      break;
    case 4:
      if (faults_.store_stalls) {
        troubles_.store_stalled_until = now() + rng_.between(100ms, 5s).count();
        troubles_.away.emplace_back(now(), troubles_.store_stalled_until);
        trace("the store stalls for {} ms", (troubles_.store_stalled_until - now()) / 1000);
      }
      break;
    case 5:
      if (faults_.store_outages) {
        troubles_.store_down_until = now() + rng_.between(500ms, 25s).count();
        troubles_.away.emplace_back(now(), troubles_.store_down_until);
        trace("the store is away for {} ms", (troubles_.store_down_until - now()) / 1000);
      }
      break;
    case 6:
      if (faults_.store_steps) {
        store_step_ += rng_.chance(0.5) ? rng_.between(0s, 120s) : -rng_.between(0s, 60s);
        troubles_.away.emplace_back(now(), now());
        trace("the store's clock is set");
      }
      break;
    case 7:
      if (faults_.failovers && store_->can_fail_over() && rng_.chance(0.3)) {
        troubles_.store_down_until = now() + rng_.between(0s, 6s).count();
        troubles_.away.emplace_back(now(), troubles_.store_down_until);
        checks_->lease_time(store_->state().lease_now);
        store_->fail_over(now());
        checks_->lease_time(store_->state().lease_now);
        trace("the store fails over and loses its last commits");
      }
      break;
    case 8:
      if (faults_.unauthorized) {
        node.unauthorized_until = now() + rng_.between(500ms, 10s).count();
        trouble(Duration(node.unauthorized_until - now()));
      }
      break;
    case 9:
      if (faults_.revocations && now() >= troubles_.store_down_until) {
        trace("{} is revoked", cameras_[static_cast<size_t>(camera)]);
        store_->revoke(cameras_[static_cast<size_t>(camera)]);
        lease::LeaseRow row = store_->row(cameras_[static_cast<size_t>(camera)]);
        announce(row.subject, true, row.owner.runner, row.version);
      }
      break;
    case 10:
      if (faults_.drains) {
        node.flags.drain = rng_.chance(0.7) ? DrainMode::soft : DrainMode::hard;
        trace("node {} shall drain", node.index);
        in(rng_.between(2s, 10s), [&node] { node.flags.drain = DrainMode::none; });
      }
      break;
    case 11:
      if (faults_.rollouts) {
        ++configuration_;
        trace("the cameras are configured anew: {}", configuration_);
      }
      break;
    case 12:
      if (faults_.rollouts && node.manager && !node.down) {
        auto m = node.manager;
        trace("node {} gets another worker program", node.index);
        think(node, m, [m] { m->mind->manager.binary_changed(); });
      }
      break;
    case 13:
      if (faults_.disabled) {
        const CameraId& id = cameras_[static_cast<size_t>(camera)];
        trace("{} is not wanted for a while", id);
        unwanted_.insert(id);
        in(rng_.between(1s, 12s), [this, id] { unwanted_.erase(id); });
      }
      break;
    case 14:
      if (faults_.host_steps) {
        node.wall_step += rng_.chance(0.5) ? rng_.between(0s, 60s) : -rng_.between(0s, 30s);
        trace("the clock of node {} is set", node.index);
      }
      break;
    default: break;
  }
}

void World::heal() {
  trace("the faults stop");
  unwanted_.clear();
  for (auto& node : nodes_) {
    node->cut_in_until = node->cut_out_until = node->unauthorized_until = 0;
    node->flags = {};
    node->in_trouble_until(now());
  }
  troubles_.store_down_until = troubles_.store_stalled_until = 0;
}

// ---- the run ----

bool World::all_streaming() {
  for (size_t c = 0; c < cameras_.size(); ++c) {
    bool reachable = std::ranges::any_of(nodes_, [&](const auto& n) { return n->reaches[c]; });
    if (reachable && checks_->last_accepted(cameras_[c]) < now() - 4 * kSecond) return false;
  }
  // The worker that publishes for a camera has published all that was spooled, and what others spooled for it is
  // dropped.
  return std::ranges::all_of(nodes_, [](const auto& node) { return node->look->list().empty(); });
}

// The state of everything, for a person who reads the trace of a world that does not come to rest.
void World::describe() {
  for (const auto& each : neighbours_) each->describe();
  for (const auto& node : nodes_) {
    if (node->down || !node->manager) continue;
    for (const runner::CameraView& view : node->manager->brain().summary().cameras)
      trace("node {} {} phase {} version {:x} worker {} shard {}", node->index, view.camera,
            runner::kCameraPhaseNames[static_cast<size_t>(view.phase)].name, view.version.n, view.worker, view.shard);
    for (const auto& [number, w] : node->manager->workers)
      for (const auto& [camera, s] : w->seats)
        trace("node {} worker {} c{} version {:x} streaming {} failures {}", node->index, number, camera, s.version.n,
              s.streaming, s.failures);
    for (const SpoolContent& each : node->look->list())
      trace("node {} keeps {} bytes of {} of grant {:x}", node->index, each.bytes, each.camera, each.tenure.grant.n);
  }
}

Outcome World::run() {
  schedule_faults();
  for (const auto& each : neighbours_) each->begin();
  // The control planes: as long as the store answers, lease time is moved on.
  std::function<void()> tick = [&] {
    if (troubles_.store_answers(now())) {
      store_->tick();
      announce_expiries();
    }
    in(lease::kTickEvery, tick);
  };
  tick();
  // Who cannot reach a camera tries for minutes before he lets go of it; after a failover nobody gets a
  // camera for as long as a lost lease could have lasted.
  TrueTime limit = (faults_.unreachable ? 300 : faults_.failovers ? 150 : 75) * kSecond, neighbours_limit = limit;
  for (const auto& each : neighbours_) neighbours_limit = std::max(neighbours_limit, each->rest_within().count());
  bool cameras_rest = false;
  const Neighbour* restless = nullptr;
  TrueTime looked = 0, resting_since = kForever;
  while (!checks_->violation() && go_on()) {
    if (now() > troubles_.faults_end + 5 * kSecond && now() > looked + kSecond / 2) {
      looked = now();
      cameras_rest = all_streaming();
      auto found = std::ranges::find_if(neighbours_, [](const auto& each) { return !each->at_rest(); });
      restless = found == neighbours_.end() ? nullptr : found->get();
      resting_since = cameras_rest && restless == nullptr ? std::min(resting_since, now()) : kForever;
      // One moment at rest is not enough: the world has to stay at rest.
      if (now() > resting_since + 10 * kSecond) {
        check_losses();
        break;
      }
    }
    if (now() > troubles_.faults_end + (cameras_rest ? neighbours_limit : limit)) {
      std::string_view what = restless != nullptr ? restless->unrest()
                                                  : "a reachable camera does not stream, or events lie on a disk";
      checks_->fail(now(), fmt::format("{}, {} s after the faults stopped", what,
                                       (now() - troubles_.faults_end) / kSecond));
      describe();
      break;
    }
  }
  return {checks_->violation(), hash(), events(), static_cast<double>(now() - troubles_.faults_end) / kSecond};
}

Outcome run(const Options& options) { return World(options).run(); }

}  // namespace weir::sim
