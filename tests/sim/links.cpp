// What the product's manager has on its own host: worker processes at the other end of a link, and a disk.
#include "parts.hpp"

namespace weir::sim {

namespace {

template <class T>
asio::awaitable<T> at_once(T value) {
  co_return value;
}

}  // namespace

// ---- workers ----

class World::Link final : public WorkerLink {
 public:
  Link(World& world, Node& node, ManagerPtr m, WorkerPtr w)
      : world_(world), node_(node), m_(std::move(m)), w_(std::move(w)) {}
  int pid() const override { return w_->process; }
  Duration cpu_time() const override { return Duration(0); }
  void kill() override { world_.end_worker(node_, m_, w_->process, 137); }
  asio::awaitable<int> wait() override {
    std::function<void(Done<int>)> begin = [this](const Done<int>& done) {
      if (w_->code) done(*w_->code);
      else w_->at_end.emplace_back([done](int code) { done(code); });
    };
    Result<int> code = co_await ask(std::move(begin));
    co_return *code;
  }
  Async<Nothing> ready() override {
    return ask<Nothing>([this](const Done<Nothing>& done) { world_.get_ready(node_, m_, w_, done); });
  }
  // A worker that is stopped does not answer.
  Async<link::Look> look() override {
    if (w_->paused) return world_.question<link::Look>(node_, m_, 1s, [](const Done<link::Look>&) {});
    return at_once(world_.look(w_));
  }
  Async<std::vector<link::LastWord>> tell(link::Message message) override {
    Duration within = link::answer_within(message);
    return world_.question<std::vector<link::LastWord>>(node_, m_, within,
                                                        [this, message = std::move(message)](const Told& told) {
                                                          world_.tell(node_, m_, w_, message, told);
                                                        });
  }
  Async<WorkerPage> page(std::string) override { return at_once(Result<WorkerPage>(refusal())); }

 private:
  World& world_;
  Node& node_;
  const ManagerPtr m_;
  const WorkerPtr w_;
};

class World::Host final : public WorkerHost {
 public:
  Host(World& world, Node& node, ManagerPtr m) : world_(world), node_(node), m_(std::move(m)) {}
  Result<std::unique_ptr<WorkerLink>> start(const link::ShardConfig& shard) override {
    WorkerPtr started = world_.start_worker(node_, m_, shard);
    return std::unique_ptr<WorkerLink>(new Link(world_, node_, m_, std::move(started)));
  }

 private:
  World& world_;
  Node& node_;
  const ManagerPtr m_;
};

std::unique_ptr<WorkerHost> World::host_for(Node& node, const ManagerPtr& m) {
  return std::make_unique<Host>(*this, node, m);
}

// Whoever is told to connect to a camera must have been given a token for its grant.
void World::check_paid(const ManagerPtr& m, const CameraId& camera) {
  const lease::HolderState* holder = m->brain().holder(camera);
  if (holder != nullptr && !paid_.contains({camera, holder->grant}))
    checks_->fail(now(), fmt::format("{}: dialled without a token for grant {:x}", camera, holder->grant.n));
}

World::WorkerPtr World::start_worker(Node& node, const ManagerPtr& m, const link::ShardConfig& shard) {
  for (const link::Source& source : shard.sources) check_paid(m, source.config.camera);
  auto w = std::make_shared<Worker>(gone_);
  w->process = ++processes_;
  w->shard = shard;
  w->voice = make_voice(node, m, w);
  m->workers[w->process] = w;
  trace("node {} starts process {} for {}{}", node.index, w->process, shard.shard, shard.standby ? ", standby" : "");
  return w;
}

void World::get_ready(Node& node, const ManagerPtr& m, const WorkerPtr& w, const Done<Nothing>& done) {
  w->at_end.emplace_back([done](int) { done(refusal()); });
  in(rng_.between(30ms, 400ms), [this, &node, m, w, done] {
    let_in(w, [this, &node, m, w, done] {
      for (const link::Source& source : w->shard.sources) seat(node, w, index_of(source.config.camera));
      think(node, m, [w, done] {
        if (w->alive) done(ok());
      });
    });
  });
}

void World::end_worker(Node& node, const ManagerPtr& m, int process, int code, const CameraId& culprit) {
  auto found = m->workers.find(process);
  if (found == m->workers.end() || !found->second->alive) return;
  auto w = found->second;
  trace("node {} process {} ends", node.index, process);
  w->die();
  if (!culprit.empty()) node.crash_records[w->shard.crash_file] = culprit;
  in(rng_.between(1ms, 200ms), [this, &node, m, w, code] {
    think(node, m, [m, w, code] {
      m->workers.erase(w->process);
      w->code = code;
      for (auto& each : std::exchange(w->at_end, {})) each(code);
    });
  });
}

void World::tell(Node& node, const ManagerPtr& m, const WorkerPtr& w, const link::Message& message, const Told& told) {
  Duration left{};
  auto about = [&](const link::LeaseGrant& right) { left = right.valid_until - local(node); };
  if (const auto* change = std::get_if<link::ChangeSources>(&message)) {
    for (const link::Source& source : change->add)
      if (!w->seats.contains(index_of(source.config.camera))) check_paid(m, source.config.camera);
    if (!change->add.empty()) about(*change->add.front().lease);
  } else if (const auto* leases = std::get_if<link::Leases>(&message); leases != nullptr && !leases->items.empty()) {
    about(leases->items.front());
  } else if (const auto* begin = std::get_if<link::Activate>(&message); begin != nullptr && !begin->items.empty()) {
    about(begin->items.front());
  }
  if (options_.trace)
    trace("node {} tells process {} {} {}", node.index, w->process, link::route_of(message),
          json::to_text(link::write_message(message)));
  bool arrives = !fails(), answer_arrives = !fails();
  if (!arrives) return;
  auto answer = [this, &node, m, told, answer_arrives](const std::vector<link::LastWord>& said) {
    if (!answer_arrives) return;
    in(rng_.between(0ms, 20ms), [this, &node, m, told, said] { think(node, m, [told, said] { told(said); }); });
  };
  in(rng_.between(0ms, 20ms), [this, &node, m, w, message, left, answer] {
    let_in(w, [this, &node, m, w, message, left, answer] { obey(node, m, w, message, left, answer); });
  });
}

// ---- the disk ----

class World::Files final : public RunnerDisk {
 public:
  Files(World& world, Node& node) : world_(world), node_(node) {}
  asio::awaitable<CameraId> culprit(std::string crash_file) override {
    CameraId crashed;
    if (auto found = node_.crash_records.extract(crash_file)) crashed = std::move(found.mapped());
    return at_once(std::move(crashed));
  }
  bool keep_cameras(std::string) override { return true; }
  std::string kept_cameras() override { return {}; }
  asio::awaitable<std::vector<SpoolContent>> spools() override { return at_once(node_.look->list()); }
  asio::awaitable<std::uint64_t> drop(SpoolContent left) override {
    std::uint64_t events = node_.look->drop(left.camera, left.tenure);
    if (events > 0)
      world_.trace("node {} drops {} events of {} that another has had since", node_.index, events, left.camera);
    world_.gone_ += events;
    return at_once(std::move(events));
  }

 private:
  World& world_;
  Node& node_;
};

std::unique_ptr<RunnerDisk> World::files_for(Node& node) { return std::make_unique<Files>(*this, node); }

}  // namespace weir::sim
