// The product's manager in the simulated world, and the control plane and the bus as it sees them.
#include "parts.hpp"

#include <boost/asio/co_spawn.hpp>

namespace weir::sim {

// ---- the process ----

void World::start_manager(Node& node) {
  auto m = std::make_shared<Manager>();
  int boot = options_.planted == Planted::duplicate_boot && node.index < 2 ? 0 : ++boots_;
  m->owner = {node.runner, BootId::trusted(fmt::format("b{}", boot))};
  node.manager = m;
  node.down = false;
  trace("node {} starts as {}/{}", node.index, m->owner.runner, m->owner.boot);
  Mind::Ports ports{std::make_unique<WorldClock>(clock_of(node, m)), plane_for(node, m), bus_for(m), host_for(node, m),
                    files_for(node)};
  m->mind = std::make_unique<Mind>(std::move(ports), settings_of(node, m));
  auto end = [it = m.get()](const std::exception_ptr&, int code) { it->code = code; };
  asio::co_spawn(m->mind->io, m->mind->manager.run(), end);
  think(node, m, [] {});
}

// What its coroutines hold ends with it.
void World::die(Manager& m) {
  m.alive = false;
  for (auto& [process, w] : m.workers) w->die();
  m.feed = nullptr;
  m.mind.reset();
}

void World::think(Node& node, const ManagerPtr& m, std::function<void()> what) {
  deliver(m, [this, &node, m, what = std::move(what)] {
    what();
    m->mind->go_on();
    if (m->code) kill_runner(node, true);
  });
}

WorldClock::World World::clock_of(Node& node, const ManagerPtr& m) {
  WorldClock::World clock;
  clock.now = [this, &node] { return local(node); };
  clock.wall = [this, &node] { return wall(node); };
  clock.ring_at = [this, &node, weak = std::weak_ptr(m)](Instant when, const std::weak_ptr<Bell>& bell) {
    at(std::max(now(), true_time(node, when) + 1), [this, &node, weak, bell] {
      auto there = weak.lock();
      if (!there || bell.expired()) return;
      think(node, there, [bell] {
        if (auto waited_for = bell.lock()) waited_for->cancel();
      });
    });
  };
  return clock;
}

runner::ManagerSettings World::settings_of(Node& node, const ManagerPtr& m) {
  runner::ManagerSettings out;
  out.self = {.id = node.runner, .boot = m->owner.boot};
  out.policy = policy_;
  out.camera_poll = 4s;
  out.worker_look = 600ms;
  out.usage = [](const std::vector<int>&) { return runner::Usage{}; };
  out.on_will = [](const BootId&, const Secret&) {};
  out.use_bus_token = [](const Secret&) {};
  out.control_plane_url = "http://plane";
  out.draw = [this] { return rng_.unit(); };
  out.on_note = [this, &node, weak = std::weak_ptr(m)](const runner::Note& note) { observe(node, weak.lock(), note); };
  return out;
}

void World::observe(Node& node, const ManagerPtr& m, const runner::Note& note) {
  trace("node {} {} {} {}", node.index, note.event, note.camera, note.text);
  if (note.event != "camera.lost" || !m) return;
  const lease::HolderState* holder = m->brain().holder(note.camera);  // none where it is not wanted any more either
  if (holder != nullptr) checks_->stopped(now(), note.camera, holder->version);
}

// ---- the control plane ----

class World::Plane final : public ControlPlane {
 public:
  Plane(World& world, Node& node, ManagerPtr m) : world_(&world), node_(node), m_(std::move(m)) {}

  Async<Registration> register_runner(Runner) override {
    return consult<Registration>([world = world_, &node = node_, owner = m_->owner]() -> Result<Registration> {
      // A copy of the question that comes late revives no boot whose last will was carried out.
      if (world->registered_.insert(owner).second || world->options_.planted == Planted::duplicate_boot)
        world->store_->register_boot(owner);
      world->store_->heartbeat(node.runner);
      return Registration{.flags = node.flags};
    });
  }
  Async<RunnerFlags> heartbeat(RunnerId, json::object) override {
    return consult<RunnerFlags>([world = world_, &node = node_]() -> Result<RunnerFlags> {
      world->store_->heartbeat(node.runner);
      return node.flags;
    });
  }
  Async<DesiredCameras> desired(DesiredFilter) override {
    return consult<DesiredCameras>([world = world_]() -> Result<DesiredCameras> { return world->wanted(); });
  }
  Async<std::vector<Holding>> held() override {
    return consult<std::vector<Holding>>([world = world_]() -> Result<std::vector<Holding>> {
      std::vector<Holding> out;
      for (const CameraId& camera : world->cameras_) {
        lease::LeaseRow row = world->store_->row(camera);
        bool held = !row.released && row.expires > world->store_->state().lease_now;
        if (held) out.push_back({camera, row.owner.runner, row.version});
      }
      return out;
    });
  }
  Async<std::vector<lease::LeaseRow>> leases() override {
    return consult<std::vector<lease::LeaseRow>>([world = world_]() -> Result<std::vector<lease::LeaseRow>> {
      std::vector<lease::LeaseRow> out;
      for (const CameraId& camera : world->cameras_) out.push_back(world->store_->row(camera));
      return out;
    });
  }
  // The brain gives a question up by itself; what comes later than that comes nevertheless.
  Async<Answers> apply(Batch batch) override {
    auto begin = [world = world_, &node = node_, m = m_, batch](const Done<Answers>& done) {
      world->apply(node, m, batch, done);
    };
    return world_->question<Answers>(node_, m_, 30s, begin);
  }
  Async<BudgetAnswer> consume(SiteId, BudgetUse use) override {
    // Planted: the connection comes first.
    if (world_->options_.planted == Planted::dial_before_token)
      return world_->question<BudgetAnswer>(node_, m_, 1ms, [](const Done<BudgetAnswer>& done) {
        done(BudgetAnswer{.granted = true});
      });
    return consult<BudgetAnswer>([world = world_, use] { return world->consume(use.camera, use.grant); });
  }
  Async<double> budget(SiteId site) override {
    return consult<double>([world = world_, site]() -> Result<double> {
      world->store_->tick();
      return world->store_->tokens(site);
    });
  }
  Async<LentToken> worker_token(BootId) override {
    return consult<LentToken>([]() -> Result<LentToken> { return LentToken{Secret("token"), 1h}; });
  }
  Async<Secret> runner_token() override { co_return Secret("own"); }
  Async<Nothing> report_crash(CameraId camera, lease::Owner) override {
    return consult<Nothing>([world = world_, camera]() -> Result<Nothing> {
      ++world->crashes_[camera];
      return Nothing{};
    });
  }
  Async<Nothing> send_picture(CameraId, RunnerId, SnapshotPicture) override { co_return Nothing{}; }

 private:
  template <class T>
  Async<T> consult(std::function<Result<T>()> work) {
    return world_->consult<T>(node_, m_, std::move(work));
  }
  World* const world_;
  Node& node_;
  const ManagerPtr m_;
};

std::unique_ptr<ControlPlane> World::plane_for(Node& node, const ManagerPtr& m) {
  return std::make_unique<Plane>(*this, node, m);
}

DesiredCameras World::wanted() {
  DesiredCameras out;
  for (const CameraId& camera : cameras_) {
    if (unwanted_.contains(camera)) continue;
    DesiredCamera wish;
    wish.config.camera = camera;
    wish.config.site = site_;
    // Every third version brings another model, the others only other thresholds.
    wish.config.model.name = fmt::format("m{}", configuration_ / 3);
    wish.version = fmt::format("v{}", configuration_);
    wish.crashes = crashes_[camera];
    out.readable.push_back(std::move(wish));
  }
  return out;
}

// Lease first, then the site's token, then the first connection.
Result<BudgetAnswer> World::consume(const CameraId& camera, Version grant) {
  store_->tick();
  bool granted = store_->consume(site_, camera, grant);
  checks_->tokens(now(), store_->tokens(site_), kBucketCapacity);
  if (granted && paid_.emplace(camera, grant).second)
    checks_->dialled(now(), static_cast<int>(paid_.size()), kBucketCapacity, kBucketRefill);
  return BudgetAnswer{.granted = granted, .retry_after = 1s};
}

// ---- leases ----

void World::apply(Node& node, const ManagerPtr& m, const Batch& batch, const Done<Answers>& done) {
  std::vector<std::uint64_t> ids;
  for (const lease::Ask& each : batch.asks) {
    const lease::HolderState* holder = m->brain().holder(each.subject);
    ids.push_back(holder != nullptr && holder->open ? holder->open->id : 0);
  }
  TrueTime asked = now();
  auto work = [=, this, &node]() -> Reply {
    Answers answers = serve_leases(batch);
    return [=, this, &node] {
      think(node, m, [=, this, &node] {
        Answers heard;
        for (size_t i = 0; i < answers.size(); ++i) heard.push_back(hear(node, m, ids[i], answers[i], asked));
        done(std::move(heard));
      });
    };
  };
  request(node, m, work, [=, this, &node] { think(node, m, [=, this, &node] { done(refused(node, m, batch)); }); });
}

World::Answers World::serve_leases(const Batch& batch) {
  std::vector<lease::LeaseRow> before;
  for (const auto& each : batch.asks) before.push_back(store_->row(each.subject));
  Answers answers = store_->apply(batch);
  for (size_t i = 0; i < answers.size(); ++i) {
    const Answer& answer = answers[i];
    trace("store: {} {} {} -> {} version {:x}", batch.owner.runner, batch.owner.boot, answer.subject,
          std::string(json::write_value(answer.outcome).as_string()), answer.version.n);
    note(static_cast<std::uint64_t>(answer.outcome) + static_cast<std::uint64_t>(answer.version.n) * 31);
    checks_->answered(now(), batch, answer);
    // Whoever lost it had trouble, or shares its runner_id with somebody, or asked too late since the store came back.
    if (answer.stolen) {
      bool troubled = faults_.twin_runner || options_.planted == Planted::duplicate_boot || store_unsteady();
      for (const auto& other : nodes_)
        troubled |= other->runner == before[i].owner.runner &&
                    (recent(other->trouble) || other->down || before[i].owner != other->manager->owner);
      // A copy of its question that came late was granted, long after the first had been refused and heard.
      troubled |= faults_.duplication && !checks_->believed(answer.subject, before[i].version);
      checks_->taken_over(now(), answer.subject, troubled);
      ++taken_over_;
    }
    if (answer.outcome == lease::Outcome::released) announce(answer.subject, true, batch.owner.runner, answer.version);
    if (answer.outcome == lease::Outcome::granted) announce(answer.subject, false, batch.owner.runner, answer.version);
  }
  return answers;
}

// Says nothing about any lease.
Result<World::Answers> World::refused(Node& node, const ManagerPtr& m, const Batch& batch) {
  if (options_.planted != Planted::unauthorized_is_lost || now() >= node.unauthorized_until + kSecond) return refusal();
  Answers invented;
  for (const lease::Ask& each : batch.asks) {
    const lease::HolderState* holder = m->brain().holder(each.subject);
    if (holder == nullptr) return refusal();
    invented.push_back({each.subject, lease::Outcome::lost, {holder->version.n + 1}});
  }
  return invented;
}

Answer World::hear(Node& node, const ManagerPtr& m, std::uint64_t id, Answer answer, TrueTime asked) {
  const lease::HolderState* holder = m->brain().holder(answer.subject);
  bool yes = answer.outcome == lease::Outcome::granted || answer.outcome == lease::Outcome::renewed ||
             answer.outcome == lease::Outcome::rotated;
  bool counts = holder != nullptr && holder->open && holder->open->id == id;
  // The right as it really is: from before asking, for the TTL less the margin, by this node's clock.
  if (yes && counts) {
    Duration length = answer.ttl - lease::safety_margin(answer.ttl);
    TrueTime until = asked + static_cast<TrueTime>(static_cast<double>(length.count()) / node.rate);
    TrueTime& right = m->right[answer.version];
    right = std::max(right, until);
    checks_->believes(answer.subject, m->owner, answer.version, until);
  }
  if (options_.planted == Planted::stamp_after_reply && counts) answer.ttl += local(node) - holder->open->asked_at;
  // Planted: what comes too late for its own question is taken for the answer to the next one.
  if (options_.planted == Planted::renew_crosses_rotation) {
    if (!counts) m->late[answer.subject] = answer;
    else if (auto late = m->late.extract(answer.subject)) return late.mapped();
  }
  return answer;
}

// ---- the bus ----

class World::Bus final : public EventBus {
 public:
  explicit Bus(ManagerPtr m) : m_(std::move(m)) {}
  asio::awaitable<Result<std::vector<Confirmation>>> publish(std::vector<event::Event> events) override {
    co_return std::vector<Confirmation>(events.size(), Confirmation::accepted);
  }
  // As long as the manager lives.
  asio::awaitable<Status> subscribe(Subscription wanted, std::function<bool(const DeliveredEvent&)> each) override {
    if (wanted.pattern == "lease.#") m_->feed = std::move(each);
    return ask<Nothing>([](const Done<Nothing>&) {});
  }

 private:
  const ManagerPtr m_;
};

std::unique_ptr<EventBus> World::bus_for(const ManagerPtr& m) { return std::make_unique<Bus>(m); }

void World::announce(const CameraId& camera, bool free, const RunnerId& by, Version version) {
  DeliveredEvent event;
  event.routing_key = fmt::format("lease.{}.{}", free ? "released" : "granted", camera);
  event.payload = fmt::format(R"({{"camera_uuid":"{}","runner_id":"{}","version":{}}})", camera, by, version.n);
  for (auto& node : nodes_) {
    if (node->down || !node->manager || lost(*node)) continue;
    in(latency(), [this, n = node.get(), m = node->manager, event] {
      if (now() < n->cut_in_until) return;
      think(*n, m, [m, event] {
        if (m->feed) m->feed(event);
      });
    });
  }
}

void World::announce_expiries() {
  for (const CameraId& camera : cameras_) {
    lease::LeaseRow row = store_->row(camera);
    if (row.released || row.owner.runner.empty() || row.expires > store_->state().lease_now) continue;
    Version& said = expiry_announced_[camera];
    if (std::exchange(said, row.version) != row.version) announce(camera, true, row.owner.runner, row.version);
  }
}

}  // namespace weir::sim
