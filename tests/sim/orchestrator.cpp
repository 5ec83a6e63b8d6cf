// The product's orchestrator in the simulated world, and the control plane as it sees it.
#include "streams.hpp"

#include "weir/base/spawn.hpp"

namespace weir::sim {

// ---- the process ----

void StreamWorld::start(StreamHost& host) {
  posix::KernelFacts kernel{fmt::format("{}-{}", host.index, host.kernel), "pid:[1]"};
  auto boot = posix::BootFile::take(host.disk.folder() + "/boot", kernel);
  if (!boot) {
    time_.trace("host {}: a second orchestrator is refused the state folder", host.index);
    return;
  }
  if (!host.down)
    return all_checks_.fail(time_.now(), fmt::format("host {}: two orchestrators have one state folder", host.index));
  auto o = std::make_shared<Orchestrator>();
  o->owner = {host.id, boot->boot()};
  // Planted: the boot file's guard is skipped.
  if (is_planted(Planted::two_continue_a_boot) && !host.copied.empty()) o->owner.boot = host.copied;
  time_.trace("host {} starts an orchestrator as {}, {}", host.index, host.id,
              boot->continued() ? "which continues its boot" : "under a new boot");
  o->boot.emplace(*std::move(boot));
  host.orchestrator = o;
  host.down = false;
  o->mind = make_mind(host, o);
  spawn(o->mind->io.get_executor(), o->mind->orchestrator.run(), "a simulated orchestrator");
  think(o, [] {});
}

void StreamWorld::start_later(StreamHost& host, Duration delay) {
  time_.in(delay, [this, &host] {
    if (host.down) start(host);
  });
}

// What its coroutines hold ends with it, and so does its lock.
void StreamWorld::die(Orchestrator& o) {
  o.alive = false;
  o.orders = nullptr;
  o.mind.reset();
  o.boot.reset();
}

void StreamWorld::think(const OrchestratorPtr& o, std::function<void()> what) {
  Timeline::deliver(o, [o, what = std::move(what)] {
    what();
    o->mind->go_on();
  });
}

WorldClock::World StreamWorld::clock_of(const StreamHost& host, const OrchestratorPtr& o) {
  WorldClock::World clock;
  clock.now = [this, &host] { return time_.local(host); };
  clock.wall = [this, &host] { return WallTime(20'000 * 24h + time_.local(host).time_since_epoch()); };
  clock.ring_at = [this, &host, weak = std::weak_ptr(o)](Instant when, const std::weak_ptr<Bell>& bell) {
    time_.at(std::max(time_.now(), Timeline::true_time(host, when) + 1), [this, weak, bell] {
      auto there = weak.lock();
      if (!there || bell.expired()) return;
      think(there, [bell] {
        if (auto waited_for = bell.lock()) waited_for->cancel();
      });
    });
  };
  return clock;
}

orchestrator::OrchestratorSettings StreamWorld::settings_of(const Orchestrator& o) {
  orchestrator::OrchestratorSettings out;
  out.owner = o.owner;
  out.home = {kTenant, SiteId::trusted("s")};
  out.lease = lease_;
  out.policy = policy_;
  out.programs = {.worker = "/weir-worker", .forwarder = "/weir-egress", .rtsp_base = Secret("rtsp://media"),
                  .folder = "/streams"};
  if (foreign_worker_) out.programs.worker_command = {"/worker", "{stream_id}"};
  for (const Channel& channel : channels_)
    if (channel.forwarded)
      out.file[channel.id] = stream::Wishes{.forward = true,
                                            .destination = Secret("rtmp://destination.example/app/key")};
  out.draw = [this] { return rng_.unit(); };
  return out;
}

// ---- the control plane ----

class StreamWorld::Plane final : public StreamPlane {
 public:
  Plane(StreamWorld& world, StreamHost& host, OrchestratorPtr o) : world_(&world), host_(host), o_(std::move(o)) {}

  Async<Answers> apply(lease::Batch batch) override {
    auto work = [world = world_, batch = std::move(batch)]() -> Result<Answers> { return world->serve_leases(batch); };
    auto hear = [world = world_, &host = host_, o = o_, asked = world_->time_.now()](const Answers& answers) {
      world->hear(host, *o, asked, answers);
    };
    return world_->consult<Answers>(host_, o_, std::move(work), std::move(hear));
  }
  Async<StreamRecord> record(SubjectId id) override {
    return consult<StreamRecord>([world = world_, id] { return world->store_.record(id); });
  }
  Async<std::vector<StreamRecord>> records() override {
    using Records = std::vector<StreamRecord>;
    return consult<Records>([world = world_]() -> Result<Records> { return world->store_.records(); });
  }
  Async<Nothing> tell(StreamTold told) override {
    auto work = [world = world_, o = o_, told = std::move(told), said = world_->time_.now()]() -> Result<Nothing> {
      auto answer = world->store_.tell(told);
      if (bool(answer) != world->accept(*o, told.id, told.version, said))
        world->all_checks_.fail(world->time_.now(), fmt::format("{}: a word under version {:x} was {}", told.id,
                                                                told.version.n, answer ? "kept" : "refused"));
      return answer;
    };
    return consult<Nothing>(std::move(work));
  }
  Async<Nothing> publish(event::Event event) override {
    auto work = [world = world_, o = o_, stamp = *event.stamp, said = world_->time_.now()]() -> Result<Nothing> {
      return world->accept(*o, stamp.camera, stamp.version, said) ? ok() : Status(stale_word());
    };
    return consult<Nothing>(std::move(work));
  }
  // As long as the orchestrator lives.
  asio::awaitable<Status> follow(std::function<void(const StreamOrder&)> each) override {
    o_->orders = std::move(each);
    return ask<Nothing>([](const Done<Nothing>&) {});
  }

 private:
  template <class T>
  Async<T> consult(std::function<Result<T>()> work) {
    return world_->consult<T>(host_, o_, std::move(work));
  }
  StreamWorld* const world_;
  StreamHost& host_;
  const OrchestratorPtr o_;
};

std::unique_ptr<StreamPlane> StreamWorld::plane_for(StreamHost& host, const OrchestratorPtr& o) {
  return std::make_unique<Plane>(*this, host, o);
}

std::unique_ptr<OrchestratorMind> StreamWorld::make_mind(StreamHost& host, const OrchestratorPtr& o) {
  OrchestratorMind::Ports ports{std::make_unique<WorldClock>(clock_of(host, o)), plane_for(host, o),
                                children_for(host, o), media_for(host, o)};
  return std::make_unique<OrchestratorMind>(std::move(ports), settings_of(*o));
}

StreamWorld::Answers StreamWorld::serve_leases(const lease::Batch& batch) {
  Answers answers = store_.apply(batch);
  if (is_planted(Planted::unknown_version_is_used)) use_unknown_versions(batch, answers);
  for (const lease::Answer& answer : answers) {
    time_.trace("store: {} {} -> {} version {:x}{}", batch.owner.runner, answer.subject,
                std::string(json::write_value(answer.outcome).as_string()), answer.version.n,
                answer.yours ? ", its own" : "");
    time_.note(static_cast<std::uint64_t>(answer.outcome) + static_cast<std::uint64_t>(answer.version.n) * 31);
    all_checks_.answered(time_.now(), batch, answer);
  }
  return answers;
}

// Planted: what the store says is this owner's is renewed as it is, whoever may have used its version.
void StreamWorld::use_unknown_versions(const lease::Batch& batch, Answers& answers) {
  for (lease::Answer& answer : answers) {
    if (answer.outcome != lease::Outcome::held || !answer.yours) continue;
    lease::Batch renewal = batch;
    renewal.operation = lease::Operation::renew;
    renewal.asks = {{.subject = answer.subject, .version = answer.version}};
    answer = store_.apply(renewal).front();
  }
}

void StreamWorld::hear(StreamHost& host, Orchestrator& o, TrueTime asked, const Answers& answers) {
  for (const lease::Answer& answer : answers) {
    if (!answer.holds() || answer.outcome == lease::Outcome::held) continue;
    // The right as it really is: from before asking, for the TTL less the margin, by this host's clock.
    Duration length = answer.ttl - lease::safety_margin(answer.ttl);
    Instant until = time_.local(host, asked) + length;
    Instant& heard = o.heard[{answer.subject, answer.version}];
    heard = std::max(heard, until);
    checks_.heard(answer.subject, o.owner, answer.version, Timeline::true_time(host, until));
  }
}

// The fence: whether a word that was said then counts.
bool StreamWorld::accept(const Orchestrator& o, const SubjectId& stream, lease::Version version, TrueTime said) {
  if (!lease::fence_accepts(store_.row(stream), o.owner, version, store_.state().epoch)) return false;
  time_.note(static_cast<std::uint64_t>(version.n));
  all_checks_.accepted(time_.now(), stream, version, said);
  return true;
}

}  // namespace weir::sim
