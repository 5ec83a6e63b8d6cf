// A process of the cluster in the simulated world, the control plane as it sees it, and the products that listen to it.
#include "clusters.hpp"

#include "weir/base/spawn.hpp"

namespace weir::sim {

namespace {

// Of the result that the event tells of.
int number_in(const event::Event& event) {
  auto payload = *json::parse_text(event.payload);
  return static_cast<int>(payload.at("detections").at(0).at("bbox_xyxy").at(0).to_number<double>());
}

}  // namespace

// ---- the process ----

void ClusterWorld::start(ClusterHost& host) {
  auto p = std::make_shared<ClusterProcess>();
  p->number = ++processes_;
  p->owner = {host.id, BootId::trusted(fmt::format("{}-{}", host.id, ++host.boots))};
  time_.trace("host {} starts backend {}", host.index, p->number);
  host.process = p;
  host.down = false;
  p->mind = std::make_unique<ClusterMind>();
  ClusterMind& mind = *p->mind;
  mind.ports.clock = std::make_unique<WorldClock>(clock_of(host, p));
  mind.ports.plane = plane_for(host, p);
  mind.ports.bus = bus_for(host, p);
  mind.ports.link = workers_->link_for(host, p);
  mind.ports.coordination = redis_.connect(host, p);
  cluster::BackendPorts ports{*mind.ports.plane, *mind.ports.bus, *mind.ports.link, *mind.ports.coordination,
                              *mind.ports.clock};
  mind.backend = std::make_unique<cluster::Backend>(mind.io, ports, mind.metrics, settings_of(*p));
  auto ended = [this, &host, weak = std::weak_ptr(p)] {
    time_.in(1ms, [this, &host, weak] {
      if (auto there = weak.lock(); there && there->alive) end(host, there);
    });
  };
  spawn(mind.io.get_executor(), mind.backend->run(), "a simulated process of a cluster", ended);
  think(p, [] {});
}

void ClusterWorld::start_later(ClusterHost& host, Duration delay) {
  time_.in(delay, [this, &host] {
    if (host.down) start(host);
  });
}

// In good order: it gives the lease back.
void ClusterWorld::stop(ClusterHost& host) {
  if (host.down) return;
  time_.trace("backend {} is stopped", host.process->number);
  think(host.process, [p = host.process] { p->mind->backend->stop(); });
}

void ClusterWorld::end(ClusterHost& host, const ClusterProcessPtr& p) {
  time_.trace("backend {} ends", p->number);
  die(*p);
  host.down = true;
  for (Product& product : products_)
    if (product.at == p) leave(product);
  start_later(host, rng_.chance(0.6) ? rng_.between(200ms, 3s) : rng_.between(3s, 15s));
}

// What its coroutines hold ends with it.
void ClusterWorld::die(ClusterProcess& p) {
  p.alive = false;
  p.feeds.clear();
  p.mind.reset();
  checks_.let_go(p.number);
}

WorldClock::World ClusterWorld::clock_of(const ClusterHost& host, const ClusterProcessPtr& p) {
  WorldClock::World clock;
  clock.now = [this, &host] { return time_.local(host); };
  clock.wall = [this, &host] { return WallTime(20'000 * 24h + time_.local(host).time_since_epoch()); };
  clock.ring_at = [this, &host, weak = std::weak_ptr(p)](Instant when, const std::weak_ptr<Bell>& bell) {
    time_.at(std::max(time_.now(), Timeline::true_time(host, when) + 1), [weak, bell] {
      auto there = weak.lock();
      if (!there || bell.expired()) return;
      think(there, [bell] {
        if (auto waited_for = bell.lock()) waited_for->cancel();
      });
    });
  };
  return clock;
}

cluster::BackendSettings ClusterWorld::settings_of(const ClusterProcess& p) {
  cluster::BackendSettings out = settings_;
  out.owner = p.owner;
  out.draw = [this] { return rng_.unit(); };
  return out;
}

// ---- the control plane ----

class ClusterWorld::Plane final : public ClusterPlane {
 public:
  Plane(ClusterWorld& world, ClusterHost& host, ClusterProcessPtr p) : world_(&world), host_(host), p_(std::move(p)) {}

  Async<Answers> apply(lease::Batch batch) override {
    if (batch.operation == lease::Operation::release) world_->checks_.let_go(p_->number);
    std::function<Result<Answers>()> work = [world = world_, batch = std::move(batch)] {
      return world->serve_leases(batch);
    };
    std::function<void(const Answers&)> hear = [world = world_, &host = host_, p = p_,
                                                asked = world_->time_.now()](const Answers& answers) {
      world->hear_leases(host, *p, asked, answers);
    };
    Result<Answers> answers = co_await world_->consult<Answers>(host_, p_, std::move(work), std::move(hear));
    // Planted: the right is never looked at again.
    if (answers && world_->is_planted(Planted::deadline_unchecked))
      for (lease::Answer& each : *answers) each.ttl += 1h;
    co_return answers;
  }
  Async<std::vector<ClusterWish>> desired(ClusterId) override {
    using Wishes = std::vector<ClusterWish>;
    return world_->consult<Wishes>(host_, p_, [world = world_]() -> Result<Wishes> {
      Wishes out;
      for (const auto& [id, wish] : world->rows_) out.push_back(wish);
      return out;
    });
  }
  Async<Secret> model_url(std::int64_t model) override {
    return world_->consult<Secret>(host_, p_, [model]() -> Result<Secret> {
      return Secret(fmt::format("http://plane/models/{}?signature=s", model));
    });
  }
  Async<Secret> token() override { co_return Secret("token"); }
  // The world changes the rows itself.
  Async<Nothing> subscribe(SubscriptionRecord) override { co_return refused(); }
  Async<bool> unsubscribe(SubscriptionId) override { co_return refused(); }
  Async<std::vector<SubscriptionId>> subscriptions_of(CameraId) override { co_return refused(); }

 private:
  static Error refused() { return {Errc::unavailable, "not_here", "no product subscribes in this world"}; }
  ClusterWorld* const world_;
  ClusterHost& host_;
  const ClusterProcessPtr p_;
};

class ClusterWorld::Bus final : public EventBus {
 public:
  Bus(ClusterWorld& world, ClusterHost& host, ClusterProcessPtr p) : world_(&world), host_(host), p_(std::move(p)) {}

  asio::awaitable<Result<Confirmations>> publish(std::vector<event::Event> events) override {
    TrueTime now = world_->time_.now();
    for (const event::Event& each : events)
      if (world_->time_.local(host_) >= each.stamp->deadline) co_return no_answer("deadline_passed");
    world_->checks_.acts(now, p_->number, "publishes");
    for (const event::Event& each : events) world_->checks_.passed_on(now, p_->number, number_in(each), "the bus");
    std::function<Result<Confirmations>()> work = [world = world_, p = p_, events = std::move(events), now] {
      Confirmations out;
      for (const event::Event& each : events) out.push_back(world->accept(*p, each, now));
      return out;
    };
    Result<Confirmations> answers = co_await world_->consult<Confirmations>(host_, p_, std::move(work));
    co_return answers;
  }
  asio::awaitable<Status> subscribe(Subscription, std::function<bool(const DeliveredEvent&)> each) override {
    return ask<Nothing>([p = p_, each = std::move(each)](const Done<Nothing>& ended) {
      p->feeds.push_back({each, ended});
    });
  }

 private:
  ClusterWorld* const world_;
  ClusterHost& host_;
  const ClusterProcessPtr p_;
};

std::unique_ptr<ClusterPlane> ClusterWorld::plane_for(ClusterHost& host, const ClusterProcessPtr& p) {
  return std::make_unique<Plane>(*this, host, p);
}
std::unique_ptr<EventBus> ClusterWorld::bus_for(ClusterHost& host, const ClusterProcessPtr& p) {
  return std::make_unique<Bus>(*this, host, p);
}

ClusterWorld::Answers ClusterWorld::serve_leases(const lease::Batch& batch) {
  Answers answers = store_.apply(batch);
  for (const lease::Answer& answer : answers) {
    time_.trace("store: {} {} -> {} version {:x}", batch.owner.boot, answer.subject,
                std::string(json::write_value(answer.outcome).as_string()), answer.version.n);
    time_.note(static_cast<std::uint64_t>(answer.outcome) + static_cast<std::uint64_t>(answer.version.n) * 31);
    all_checks_.answered(time_.now(), batch, answer);
  }
  return answers;
}

void ClusterWorld::hear_leases(const ClusterHost& host, const ClusterProcess& p, TrueTime asked,
                               const Answers& answers) {
  for (const lease::Answer& answer : answers) {
    if (!answer.holds() || answer.outcome == lease::Outcome::held) continue;
    // The right as it really is: from before asking, for the TTL less the margin, by this host's clock.
    Instant until = time_.local(host, asked) + answer.ttl - lease::safety_margin(answer.ttl);
    checks_.heard(p.number, p.owner, answer.version, Timeline::true_time(host, until));
  }
}

// The fence of a camera that a cluster processes.
Confirmation ClusterWorld::accept(const ClusterProcess& p, const event::Event& event, TrueTime said) {
  if (event_ids_.contains(event.event_id)) return Confirmation::duplicate;
  int number = number_in(event);
  lease::LeaseRow camera{.subject = event.stamp->camera};
  if (auto row = rows_.find(checks_.subscription_of(number)); row != rows_.end()) camera.version = row->second.above;
  bool accepted = lease::fence_accepts(camera, store_.row(settings_.cluster), p.owner, event.stamp->version,
                                       store_.state().epoch);
  if (!accepted) return Confirmation::stale;
  event_ids_.insert(event.event_id);
  time_.note(static_cast<std::uint64_t>(number));
  checks_.accepted(time_.now(), p.number, number, event.stamp->camera, event.stamp->version, said);
  return Confirmation::accepted;
}

// Whoever is cut off has its feed broken, and follows it anew.
void ClusterWorld::announce_rows() {
  for (auto& host : hosts_) {
    if (host->down) continue;
    ClusterProcessPtr p = host->process;
    TrueTime cut = std::max(host->cut_in_until, host->unauthorized_until);
    bool breaks = time_.now() < cut || network_.lost(*host);
    time_.at(std::max(cut, time_.now() + network_.latency().count()), [p, breaks] {
      think(p, [p, breaks] {
        if (breaks) return break_feeds(*p);
        for (const Followed& feed : std::vector(p->feeds)) feed.each(DeliveredEvent{});
      });
    });
  }
}

void ClusterWorld::break_feeds(ClusterProcess& p) {
  for (const Followed& feed : std::exchange(p.feeds, {})) feed.ended(no_answer());
}

// ---- products ----

void ClusterWorld::listen(Product& product) {
  ClusterHost& host = any_host();
  if (host.down) return time_.in(1s, [this, &product] { listen(product); });
  product.at = host.process;
  think(host.process, [this, &product, p = host.process] {
    auto each = [this, &product, number = p->number](const cluster::Notice& notice) { hear(product, number, notice); };
    if (product.at == p) product.hearing = p->mind->backend->listen(product.place, each, [] { return true; });
  });
}

// Of its own will.
void ClusterWorld::move_on(Product& product) {
  if (!product.at) return;
  think(product.at, [this, &product, p = product.at] {
    if (product.at == p && product.hearing) leave(product);
  });
}

// Its process may be dead.
void ClusterWorld::leave(Product& product) {
  product.hearing.reset();
  product.at.reset();
  time_.in(rng_.between(100ms, 4s), [this, &product] { listen(product); });
}

void ClusterWorld::hear(Product& product, int process, const cluster::Notice& notice) {
  if (const auto* seen = std::get_if<cluster::DetectionSeen>(&notice)) {
    int number = static_cast<int>(seen->detection.boxes.at(0).box[0]);
    if (seen->stream_id.empty()) return checks_.passed_on(time_.now(), process, number, "its listeners");
    time_.note(static_cast<std::uint64_t>(number) + 1'000'000);
    checks_.told(time_.now(), product.number, seen->stream_id, number);
    product.place = seen->stream_id;
  } else if (std::holds_alternative<cluster::DetectionsLost>(notice)) {
    time_.trace("product {} is told of a gap", product.number);
    checks_.told_of_a_gap(time_.now(), product.number);
  }
}

}  // namespace weir::sim
