#include "world.hpp"

#include "faults.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::sim {

using lease::Answer;
using lease::Batch;
using lease::HolderEvent;
using lease::HolderState;
using lease::Operation;
using lease::Version;

namespace {

constexpr TrueTime kSecond = 1'000'000;
constexpr TrueTime kForever = INT64_MAX / 4;
constexpr double kBucketCapacity = 4, kBucketRefill = 60;

struct Event {
  std::uint64_t id;
  TrueTime captured;
};

// What one host keeps on its disk for a camera: events that are not confirmed yet, and the tenure they belong to.
struct Spool {
  lease::Tenure tenure;
  std::deque<Event> events;
};

// A process that can be stopped: what reaches it meanwhile waits, as in a socket's buffer.
struct Process {
  bool alive = true;
  bool paused = false;
  std::vector<std::function<void()>> waiting;
};

struct Worker : Process {
  int number = 0;
  int camera = 0;
  Version version{};
  Version grant{};
  Instant valid_until{};
  TrueTime right_until = -1;   // when its right really ends
  bool streaming = false;
  bool dialling = false;
  bool in_flight = false;
  std::uint64_t batch = 0;
};

struct Manager : Process {
  lease::Owner owner;
  std::vector<HolderState> holders;
  std::vector<std::shared_ptr<Worker>> workers;
  std::vector<Version> token_for;       // the grant whose first connection was paid for
  std::map<Version, TrueTime> right;    // by version: when the right really ends
  std::map<std::uint64_t, TrueTime> asked;  // question number and camera → true time of asking
  std::vector<std::pair<int, lease::Question>> outgoing;
  std::uint64_t timer = 0;
};

struct Node {
  int index = 0;
  RunnerId runner;
  double rate = 1.0;
  Duration offset{};
  std::shared_ptr<Manager> manager;
  std::vector<bool> reaches;
  std::vector<Spool> disk;
  TrueTime cut_out_until = 0, cut_in_until = 0, unauthorized_until = 0;
  TrueTime trouble = -kForever;   // the last time when something was wrong with this node or its messages
  bool down = false;
};

class World {
 public:
  explicit World(const Options& options)
      : options_(options), rng_(options.seed), faults_(rng_) {
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
    make_nodes();
  }

  Outcome run();

 private:
  // ---- time ----
  void at(TrueTime when, std::function<void()> what) { queue_.push({std::max(when, now_), ++sequence_, std::move(what)}); }
  void in(Duration delay, std::function<void()> what) { at(now_ + delay.count(), std::move(what)); }
  Instant local(const Node& n) const {
    return Instant(n.offset + Duration(static_cast<Duration::rep>(static_cast<double>(now_) * n.rate)));
  }
  TrueTime true_time(const Node& n, Instant when) const {
    return static_cast<TrueTime>(static_cast<double>((when.time_since_epoch() - n.offset).count()) / n.rate);
  }
  WallTime store_clock() const {
    return WallTime(std::chrono::hours(24 * 20000) + store_step_ +
                    Duration(static_cast<Duration::rep>(static_cast<double>(now_) * store_rate_)));
  }
  void note(std::uint64_t what) { hash_ = (hash_ ^ (what + static_cast<std::uint64_t>(now_))) * 0x100000001B3ull; }
  template <class... T>
  void trace(fmt::format_string<T...> text, T&&... values) {
    if (options_.trace) fmt::print("{:10.6f} {}\n", static_cast<double>(now_) / 1e6, fmt::format(text, std::forward<T>(values)...));
  }

  // ---- set-up and faults ----
  void make_nodes();
  void start_manager(Node& node);
  void schedule_faults();
  void fault();
  void kill_runner(Node& node, bool last_will);
  void kill_worker(Node& node, int camera);
  void pause(const std::shared_ptr<Process>& process, Duration how_long);
  void heal();

  // Runs `what` in the process, or when it goes on again.
  void deliver(const std::shared_ptr<Process>& to, std::function<void()> what) {
    if (!to->alive) return;
    if (to->paused) to->waiting.push_back(std::move(what));
    else what();
  }

  // ---- network ----
  bool faulty() const { return now_ < faults_end_; }
  Duration latency() {
    if (faulty() && faults_.delay && rng_.chance(0.1)) return rng_.between(50ms, 3s);
    return rng_.between(1ms, 40ms);
  }
  bool lost(Node& node) {
    if (!faulty() || !faults_.loss || !rng_.chance(0.08)) return false;
    node.trouble = now_;
    return true;
  }
  // A request to a control plane; `serve` runs where the store is and returns what the reply shall do.
  using Reply = std::function<void()>;
  void request(Node& node, const std::shared_ptr<Process>& from, std::function<Reply()> serve, Reply refused);
  void serve(Node& node, const std::shared_ptr<Process>& from, const std::function<Reply()>& serve, const Reply& refused,
             TrueTime arrived);

  // ---- the manager ----
  void wake(Node& node, const std::shared_ptr<Manager>& m);
  void feed(Node& node, const std::shared_ptr<Manager>& m, int camera, const HolderEvent& event);
  void perform(Node& node, const std::shared_ptr<Manager>& m, int camera, const lease::HolderAction& action);
  void flush(Node& node, const std::shared_ptr<Manager>& m);
  void ask(Node& node, const std::shared_ptr<Manager>& m, Operation operation, std::vector<std::pair<int, lease::Question>> questions);
  void hear(Node& node, const std::shared_ptr<Manager>& m, int camera, const lease::Question& question, Answer answer, TrueTime asked);
  void speak(Node& node, const std::shared_ptr<Manager>& m, int camera, const lease::Speak& right);
  void stop_worker(const std::shared_ptr<Manager>& m, int camera);
  void pay_and_dial(Node& node, const std::shared_ptr<Manager>& m, int camera, Version grant);
  void heartbeat(Node& node);

  // ---- the worker ----
  std::shared_ptr<Worker> start_worker(Node& node, int camera);
  void dial(Node& node, const std::shared_ptr<Manager>& m, const std::shared_ptr<Worker>& w, int attempt);
  void capture(Node& node, const std::shared_ptr<Worker>& w);
  void pump(Node& node, const std::shared_ptr<Worker>& w);
  void publish(Node& node, const std::shared_ptr<Worker>& w, std::uint64_t batch);
  bool gate_open(const Node& node, const Worker& w) const { return w.version != Version{} && local(node) < w.valid_until; }
  // ---- the sink ----
  void arrive(Node& node, const std::shared_ptr<Worker>& w, const lease::Owner& owner, Version version, int camera,
              std::vector<Event> events, std::uint64_t batch);
  void insert(Node& node, const std::shared_ptr<Worker>& w, int camera, Version version, const std::vector<Event>& events,
              const lease::LeaseRow& row, const lease::Owner& owner, std::uint64_t batch);

  bool all_streaming();
  // Within the last 20 s that the store was there: while it is away, lease time stands still.
  bool recent(TrueTime when) const {
    TrueTime away = 0;
    for (auto [from, to] : away_)
      away += std::max<TrueTime>(0, std::min(to, now_) - std::max(from, when));
    return now_ - when - away < 20 * kSecond;
  }

  struct Scheduled {
    TrueTime when;
    std::uint64_t order;
    std::function<void()> what;
    bool operator<(const Scheduled& other) const {
      return when != other.when ? when > other.when : order > other.order;
    }
  };

  const Options options_;
  Rng rng_;
  Faults faults_;
  TrueTime now_ = 0;
  TrueTime faults_end_ = 0;
  std::uint64_t sequence_ = 0, hash_ = 0xCBF29CE484222325ull, events_ = 0, event_ids_ = 0, batches_ = 0;
  int processes_ = 0, boots_ = 0, first_dials_ = 0;
  std::priority_queue<Scheduled> queue_;

  std::vector<CameraId> cameras_;
  const SiteId site_ = SiteId::trusted("s");
  std::unique_ptr<SimStore> store_;
  std::unique_ptr<Checks> checks_;
  double store_rate_ = 1.0;
  Duration store_step_{};
  TrueTime store_down_until_ = 0, store_stalled_until_ = 0;
  std::vector<std::pair<TrueTime, TrueTime>> away_;  // when the store was not there
  std::map<int, Version> highest_seen_;           // planted: the fence that remembers only the highest
  std::set<std::uint64_t> accepted_;
  std::vector<std::unique_ptr<Node>> nodes_;
  const lease::HolderPolicy policy_;
};

void World::make_nodes() {
  int count = 2 + rng_.below(3);
  bool twin_of_first = faults_.twin_runner || options_.planted == Planted::duplicate_boot;
  for (int n = 0; n < count; ++n) {
    auto node = std::make_unique<Node>();
    node->index = n;
    // A twin is a host that was cloned with its runner_id.
    bool twin = twin_of_first && n == 1;
    node->runner = RunnerId::trusted(fmt::format("r{}", twin ? 0 : n));
    if (faults_.clock_rates) node->rate = 0.95 + 0.1 * rng_.unit();
    node->offset = Duration(rng_.below(1'000'000'000));
    node->reaches.assign(cameras_.size(), true);
    // Somebody with another runner_id must be able to reach it: a twin does not count as another runner.
    if (faults_.unreachable && n == 0 && (count > 2 || !twin_of_first)) node->reaches[0] = false;
    node->disk.resize(cameras_.size());
    nodes_.push_back(std::move(node));
  }
  for (auto& node : nodes_) in(rng_.between(0ms, 500ms), [this, n = node.get()] { start_manager(*n); });
  for (auto& node : nodes_) in(rng_.between(0ms, 500ms), [this, n = node.get()] { heartbeat(*n); });
}

void World::start_manager(Node& node) {
  auto m = std::make_shared<Manager>();
  int boot = options_.planted == Planted::duplicate_boot && node.index < 2 ? 0 : ++boots_;
  m->owner = {node.runner, BootId::trusted(fmt::format("b{}", boot))};
  m->holders.resize(cameras_.size());
  m->workers.resize(cameras_.size());
  m->token_for.resize(cameras_.size());
  node.manager = m;
  node.down = false;
  store_->register_boot(m->owner);
  store_->heartbeat(node.runner);
  trace("node {} starts as {}/{}", node.index, m->owner.runner, m->owner.boot);
  for (size_t c = 0; c < cameras_.size(); ++c) {
    m->holders[c].camera = cameras_[c];
    feed(node, m, static_cast<int>(c), lease::Wanted{});
  }
  flush(node, m);
  wake(node, m);
}

void World::heartbeat(Node& node) {
  if (!node.down && node.manager && !node.manager->paused && now_ >= node.cut_out_until && now_ >= store_down_until_)
    store_->heartbeat(node.runner);
  in(2s, [this, &node] { heartbeat(node); });
}

// ---- faults ----

void World::schedule_faults() {
  faults_end_ = 20 * kSecond + rng_.below(40) * kSecond;
  for (TrueTime t = 2 * kSecond; t < faults_end_; t += rng_.between(400ms, 4s).count()) at(t, [this] { fault(); });
  at(faults_end_, [this] { heal(); });
}

void World::pause(const std::shared_ptr<Process>& process, Duration how_long) {
  if (!process || process->paused || !process->alive) return;
  process->paused = true;
  in(how_long, [process] {
    process->paused = false;
    auto waiting = std::exchange(process->waiting, {});
    for (auto& each : waiting)
      if (process->alive) each();
  });
}

void World::kill_worker(Node& node, int camera) {
  auto m = node.manager;
  auto w = m->workers[static_cast<size_t>(camera)];
  if (!w || !w->alive) return;
  trace("node {} worker {} of {} dies", node.index, w->number, cameras_[static_cast<size_t>(camera)]);
  w->alive = false;
  // The manager notices a little later and needs a version that no process was given.
  in(rng_.between(10ms, 500ms), [this, &node, m, camera, w] {
    deliver(m, [this, &node, m, camera, w] {
      auto& slot = m->workers[static_cast<size_t>(camera)];
      if (slot != w) return;
      slot.reset();
      const HolderState& h = m->holders[static_cast<size_t>(camera)];
      if (h.phase != lease::Phase::holding) return;
      if (options_.planted == Planted::one_version_two_starts) {
        speak(node, m, camera, {h.version, h.grant, h.valid_until, true});
        return;
      }
      feed(node, m, camera, lease::FreshVersionNeeded{});
      flush(node, m);
    });
  });
}

void World::kill_runner(Node& node, bool last_will) {
  if (node.down) return;
  auto m = node.manager;
  trace("node {} is killed{}", node.index, last_will ? " and leaves its will" : "");
  m->alive = false;
  for (auto& w : m->workers)
    if (w) w->alive = false;
  node.down = true;
  node.trouble = now_;
  if (last_will) {
    auto parent = std::make_shared<Process>();
    for (int attempt = 0; attempt < 4; ++attempt)
      in(std::chrono::seconds(attempt), [this, &node, parent, owner = m->owner] {
        request(node, parent, [this, owner] {
          store_->release_all(owner);
          return Reply([] {});
        }, [] {});
      });
  }
  in(rng_.between(500ms, 8s), [this, &node] {
    node.trouble = now_;
    if (node.down) start_manager(node);
  });
}

void World::fault() {
  Node& node = *nodes_[static_cast<size_t>(rng_.below(static_cast<int>(nodes_.size())))];
  int camera = rng_.below(static_cast<int>(cameras_.size()));
  auto trouble = [&](Duration how_long) { node.trouble = now_ + how_long.count(); };
  switch (rng_.below(13)) {
    case 0:
      if (faults_.cuts) {
        Duration d = rng_.between(1s, 20s);
        if (rng_.chance(0.7)) node.cut_out_until = now_ + d.count();
        if (rng_.chance(0.7)) node.cut_in_until = now_ + d.count();
        trouble(d);
        trace("node {} is cut off for {} ms", node.index, d / 1ms);
      }
      break;
    case 1:
      if (faults_.kills) kill_runner(node, rng_.chance(0.5));
      break;
    case 2:
      if (faults_.worker_kills && node.manager && !node.down) kill_worker(node, camera);
      break;
    case 3:
      if (faults_.pauses && node.manager && !node.down) {
        Duration d = rng_.between(100ms, 30s);
        trouble(d + 1s);
        int which = rng_.below(3);
        trace("node {} is paused for {} ms ({})", node.index, d / 1ms, which);
        if (which != 1) pause(node.manager, d);
        if (which != 0)
          for (auto& w : node.manager->workers) pause(w, d);
      }
      break;
    case 4:
      if (faults_.store_stalls) {
        store_stalled_until_ = now_ + rng_.between(100ms, 5s).count();
        away_.emplace_back(now_, store_stalled_until_);
        trace("the store stalls for {} ms", (store_stalled_until_ - now_) / 1000);
      }
      break;
    case 5:
      if (faults_.store_outages) {
        store_down_until_ = now_ + rng_.between(500ms, 25s).count();
        away_.emplace_back(now_, store_down_until_);
        trace("the store is away for {} ms", (store_down_until_ - now_) / 1000);
      }
      break;
    case 6:
      if (faults_.store_steps) {
        store_step_ += rng_.chance(0.5) ? rng_.between(0s, 120s) : -rng_.between(0s, 60s);
        trace("the store's clock is set");
      }
      break;
    case 7:
      if (faults_.failovers && store_->can_fail_over() && rng_.chance(0.3)) {
        store_down_until_ = now_ + rng_.between(0s, 6s).count();
        away_.emplace_back(now_, store_down_until_);
        checks_->lease_time(store_->state().lease_now);
        store_->fail_over(now_);
        checks_->lease_time(store_->state().lease_now);
        trace("the store fails over and loses its last commits");
      }
      break;
    case 8:
      if (faults_.unauthorized) {
        node.unauthorized_until = now_ + rng_.between(500ms, 10s).count();
        trouble(Duration(node.unauthorized_until - now_));
      }
      break;
    case 9:
      if (faults_.revocations && now_ >= store_down_until_) {
        trace("{} is revoked", cameras_[static_cast<size_t>(camera)]);
        store_->revoke(cameras_[static_cast<size_t>(camera)]);
      }
      break;
    case 10:
      if (faults_.drains && node.manager && !node.down) {
        auto m = node.manager;
        deliver(m, [this, &node, m, camera] {
          stop_worker(m, camera);
          feed(node, m, camera, lease::Unwanted{});
          flush(node, m);
          in(rng_.between(2s, 10s), [this, &node, m, camera] {
            deliver(m, [this, &node, m, camera] {
              feed(node, m, camera, lease::Wanted{});
              flush(node, m);
              wake(node, m);
            });
          });
        });
      }
      break;
    default: break;
  }
}

void World::heal() {
  trace("the faults stop");
  for (auto& node : nodes_) {
    node->cut_in_until = node->cut_out_until = node->unauthorized_until = 0;
    node->trouble = now_;
  }
  store_down_until_ = store_stalled_until_ = 0;
}

// ---- network ----

void World::request(Node& node, const std::shared_ptr<Process>& from, std::function<Reply()> work, Reply refused) {
  int copies = faulty() && faults_.duplication && rng_.chance(0.05) ? 2 : 1;
  for (int copy = 0; copy < copies; ++copy) {
    if (lost(node)) continue;
    Duration delay = latency();
    if (delay > 100ms) node.trouble = now_ + delay.count();
    in(delay, [=, this, &node] {
      if (now_ < node.cut_out_until) return;
      serve(node, from, work, refused, now_);
    });
  }
}

void World::serve(Node& node, const std::shared_ptr<Process>& from, const std::function<Reply()>& work,
                  const Reply& refused, TrueTime arrived) {
  Reply reply = refused;
  if (now_ < store_down_until_ || now_ < node.unauthorized_until) {
    // 503 or 401: an answer that says nothing about the lease.
  } else if (now_ < store_stalled_until_) {
    // Waits on the stalled store; the statement's time-out ends most of these, but not all.
    if (now_ - arrived < 800'000) {
      at(std::min(store_stalled_until_, arrived + 800'000), [=, this, &node] { serve(node, from, work, refused, arrived); });
      return;
    }
  } else {
    reply = work();
    if (faults_.failovers && faulty()) store_->remember(now_);
  }
  if (lost(node)) return;
  Duration delay = latency();
  if (delay > 100ms) node.trouble = now_ + delay.count();
  in(delay, [=, this, &node] {
    if (now_ < node.cut_in_until) return;
    deliver(from, reply);
  });
}

// ---- the manager ----

void World::feed(Node& node, const std::shared_ptr<Manager>& m, int camera, const HolderEvent& event) {
  auto& holder = m->holders[static_cast<size_t>(camera)];
  auto [next, actions] = lease::step(holder, event, local(node), policy_, m->owner.boot);
  Version before = holder.version;
  holder = std::move(next);
  for (const auto& action : actions) {
    if (std::holds_alternative<lease::StopCamera>(action)) checks_->stopped(now_, cameras_[static_cast<size_t>(camera)], before);
    perform(node, m, camera, action);
  }
}

void World::perform(Node& node, const std::shared_ptr<Manager>& m, int camera, const lease::HolderAction& action) {
  auto index = static_cast<size_t>(camera);
  if (const auto* question = std::get_if<lease::SendQuestion>(&action)) {
    m->outgoing.emplace_back(camera, question->question);
  } else if (const auto* right = std::get_if<lease::Speak>(&action)) {
    speak(node, m, camera, *right);
  } else if (std::holds_alternative<lease::DropSpool>(action)) {
    node.disk[index].events.clear();
  } else {
    stop_worker(m, camera);
    node.disk[index].events.clear();
  }
}

// Questions that arise together travel together: one batch for each operation.
void World::flush(Node& node, const std::shared_ptr<Manager>& m) {
  auto outgoing = std::exchange(m->outgoing, {});
  for (Operation operation : {Operation::acquire, Operation::renew, Operation::release}) {
    std::vector<std::pair<int, lease::Question>> questions;
    for (auto& [camera, question] : outgoing)
      if (question.operation == operation) questions.emplace_back(camera, question);
    if (!questions.empty()) ask(node, m, operation, std::move(questions));
  }
}

void World::ask(Node& node, const std::shared_ptr<Manager>& m, Operation operation,
                std::vector<std::pair<int, lease::Question>> questions) {
  Batch batch{operation, m->owner, policy_.ttl};
  for (const auto& [camera, question] : questions) batch.asks.push_back(question.ask);
  TrueTime asked = now_;
  auto refused = [=, this, &node] {
    for (const auto& [camera, question] : questions) {
      if (options_.planted == Planted::unauthorized_is_lost && now_ < node.unauthorized_until + kSecond) {
        Answer invented{question.ask.camera, lease::Outcome::lost, {m->holders[static_cast<size_t>(camera)].version.n + 1}};
        feed(node, m, camera, lease::Answered{question.id, invented});
      } else {
        feed(node, m, camera, lease::Unanswered{question.id});
      }
    }
    flush(node, m);
    wake(node, m);
  };
  auto work = [=, this, &node]() -> Reply {
    std::vector<lease::LeaseRow> before;
    for (const auto& each : batch.asks) before.push_back(store_->row(each.camera));
    auto answers = store_->apply(batch);
    for (size_t i = 0; i < answers.size(); ++i) {
      const Answer& answer = answers[i];
      trace("store: {} {} {} -> {} version {:x}", batch.owner.runner, batch.owner.boot, answer.camera,
            std::string(json::write_value(answer.outcome).as_string()), answer.version.n);
      note(static_cast<std::uint64_t>(answer.outcome) + static_cast<std::uint64_t>(answer.version.n) * 31);
      checks_->answered(now_, batch, answer);
      // Whoever lost it had trouble, or shares its runner_id with somebody, or asked too late since the store came back.
      if (answer.stolen) {
        bool troubled = faults_.twin_runner || options_.planted == Planted::duplicate_boot;
        for (const auto& other : nodes_)
          troubled |= other->runner == before[i].owner.runner &&
                      (recent(other->trouble) || other->down || before[i].owner != other->manager->owner);
        checks_->taken_over(now_, answer.camera, troubled);
      }
    }
    return [=, this, &node] {
      for (size_t i = 0; i < answers.size(); ++i) {
        auto [camera, question] = questions[i];
        hear(node, m, camera, question, answers[i], asked);
      }
      flush(node, m);
      wake(node, m);
    };
  };
  request(node, m, work, refused);
}

void World::hear(Node& node, const std::shared_ptr<Manager>& m, int camera, const lease::Question& question,
                 Answer answer, TrueTime asked) {
  auto& holder = m->holders[static_cast<size_t>(camera)];
  bool yes = answer.outcome == lease::Outcome::granted || answer.outcome == lease::Outcome::renewed ||
             answer.outcome == lease::Outcome::rotated;
  // The right as it really is: from before asking, for the TTL less the margin, by this node's clock.
  if (yes) {
    Duration length = answer.ttl - lease::safety_margin(answer.ttl);
    TrueTime until = asked + static_cast<TrueTime>(static_cast<double>(length.count()) / node.rate);
    bool counts = holder.open && holder.open->id == question.id;
    if (counts) {
      TrueTime& right = m->right[answer.version];
      right = std::max(right, until);
      checks_->believes(answer.camera, m->owner, answer.version, until);
    }
  }
  std::uint64_t id = question.id;
  if (options_.planted == Planted::stamp_after_reply && holder.open && holder.open->id == id) holder.open->asked_at = local(node);
  if (options_.planted == Planted::renew_crosses_rotation && holder.open) id = holder.open->id;
  feed(node, m, camera, lease::Answered{id, std::move(answer)});
}

void World::wake(Node& node, const std::shared_ptr<Manager>& m) {
  std::optional<Instant> next;
  for (const HolderState& holder : m->holders)
    if (auto due = lease::wake_at(holder, policy_); due && (!next || *due < *next)) next = due;
  if (!next) return;
  std::uint64_t timer = ++m->timer;
  at(std::max(now_ + 1000, true_time(node, *next) + 1), [this, &node, m, timer] {
    if (timer != m->timer) return;
    deliver(m, [this, &node, m] {
      for (size_t c = 0; c < cameras_.size(); ++c) feed(node, m, static_cast<int>(c), lease::TimePassed{});
      flush(node, m);
      wake(node, m);
    });
  });
}

void World::speak(Node& node, const std::shared_ptr<Manager>& m, int camera, const lease::Speak& right) {
  auto index = static_cast<size_t>(camera);
  Spool& spool = node.disk[index];
  lease::Tenure tenure{m->owner.boot, right.grant};
  if (spool.tenure != tenure) {
    bool adopt = right.adopt && *right.adopt == spool.tenure;
    if (!adopt && options_.planted != Planted::foreign_spool) spool.events.clear();
    spool.tenure = tenure;
  }
  auto& w = m->workers[index];
  if (!w || !w->alive) {
    if (!right.fresh) return;  // its worker died; a fresh version is on its way
    w = start_worker(node, camera);
  }
  auto found = m->right.find(right.version);
  TrueTime right_until = found == m->right.end() ? -1 : found->second;
  if (m->token_for[index] != right.grant || !w->streaming) pay_and_dial(node, m, camera, right.grant);
  Duration left = right.valid_until - local(node);
  in(rng_.between(0ms, 20ms), [=, this, &node, w = w] {
    deliver(w, [=, this, &node] {
      if (right.version < w->version) return;
      w->version = right.version;
      w->grant = right.grant;
      w->valid_until = options_.planted == Planted::relative_deadline ? local(node) + left : right.valid_until;
      w->right_until = right_until;
      pump(node, w);
    });
  });
}

void World::stop_worker(const std::shared_ptr<Manager>& m, int camera) {
  auto& w = m->workers[static_cast<size_t>(camera)];
  if (w) w->alive = false;
  w.reset();
}

// Lease first, then the site's token, then the first connection. Rotations and restarts keep the token.
void World::pay_and_dial(Node& node, const std::shared_ptr<Manager>& m, int camera, Version grant) {
  auto index = static_cast<size_t>(camera);
  auto w = m->workers[index];
  if (m->token_for[index] == grant) {
    if (w && !w->dialling) dial(node, m, w, 0);
    return;
  }
  request(node, m, [=, this, &node]() -> Reply {
    store_->tick();
    bool granted = store_->consume(site_, cameras_[index], grant);
    checks_->tokens(now_, store_->tokens(site_), kBucketCapacity);
    return [=, this, &node] {
      if (m->workers[index] != w || m->holders[index].grant != grant || m->token_for[index] == grant) return;
      if (granted) {
        m->token_for[index] = grant;
        checks_->dialled(now_, ++first_dials_, kBucketCapacity, kBucketRefill);
        dial(node, m, w, 0);
      }
    };
  }, [] {});
}

// ---- the worker ----

std::shared_ptr<Worker> World::start_worker(Node& node, int camera) {
  auto w = std::make_shared<Worker>();
  w->number = ++processes_;
  w->camera = camera;
  trace("node {} starts worker {} for {}", node.index, w->number, cameras_[static_cast<size_t>(camera)]);
  in(rng_.between(200ms, 900ms), [this, &node, w] { capture(node, w); });
  return w;
}

void World::dial(Node& node, const std::shared_ptr<Manager>& m, const std::shared_ptr<Worker>& w, int attempt) {
  if (!w) return;
  w->dialling = true;
  in(rng_.between(200ms, 1200ms), [this, &node, m, w, attempt] {
    deliver(w, [this, &node, m, w, attempt] {
      auto index = static_cast<size_t>(w->camera);
      if (w->streaming || m->workers[index] != w) return;
      if (node.reaches[index]) {
        w->streaming = true;
        return;
      }
      // After three failures the runner asks whether somebody else can reach it, and again every ten seconds.
      if (attempt >= 3 && options_.planted != Planted::never_lets_go)
        deliver(m, [this, &node, m, w] {
          feed(node, m, w->camera, lease::Unreachable{});
          flush(node, m);
          wake(node, m);
        });
      in(attempt >= 3 ? Duration(10s) : Duration(500ms), [this, &node, m, w, attempt] { dial(node, m, w, attempt + 1); });
    });
  });
}

void World::capture(Node& node, const std::shared_ptr<Worker>& w) {
  if (!w->alive) return;
  in(rng_.between(600ms, 1000ms), [this, &node, w] { capture(node, w); });
  if (w->paused || !w->streaming) return;
  auto& events = node.disk[static_cast<size_t>(w->camera)].events;
  events.push_back({++event_ids_, now_});
  if (events.size() > 300) events.pop_front();
  pump(node, w);
}

// One batch in flight: what is not confirmed is sent again before anything newer.
void World::pump(Node& node, const std::shared_ptr<Worker>& w) {
  if (!w->alive || w->paused || w->in_flight || node.disk[static_cast<size_t>(w->camera)].events.empty()) return;
  if (!gate_open(node, *w)) return;
  w->in_flight = true;
  std::uint64_t batch = w->batch = ++batches_;
  bool blocks = faulty() && faults_.blocking && rng_.chance(0.1);
  if (!blocks) return publish(node, w, batch);
  in(rng_.between(100ms, 6s), [this, &node, w, batch] {
    deliver(w, [this, &node, w, batch] { publish(node, w, batch); });
  });
}

void World::publish(Node& node, const std::shared_ptr<Worker>& w, std::uint64_t batch) {
  if (!w->alive || w->batch != batch) return;
  auto& spool = node.disk[static_cast<size_t>(w->camera)].events;
  // After anything that can block the gate is looked at again.
  if (!gate_open(node, *w) && options_.planted != Planted::no_check_after_wait) {
    w->in_flight = false;
    return;
  }
  const CameraId& camera = cameras_[static_cast<size_t>(w->camera)];
  checks_->emitted(now_, camera, w->version, w->number, w->right_until);
  std::vector<Event> events(spool.begin(), spool.begin() + std::min<std::ptrdiff_t>(30, std::ssize(spool)));
  Duration delay = faulty() && faults_.late_bytes && rng_.chance(0.1) ? rng_.between(500ms, 20s) : latency();
  if (!lost(node) && now_ >= node.cut_out_until)
    in(delay, [=, this, &node, owner = node.manager->owner, version = w->version, events = std::move(events)] {
      arrive(node, w, owner, version, w->camera, events, batch);
    });
  in(1s, [this, &node, w, batch] {
    deliver(w, [this, &node, w, batch] {
      if (w->batch != batch || !w->in_flight) return;
      w->in_flight = false;
      pump(node, w);
    });
  });
}

// ---- the sink ----

void World::arrive(Node& node, const std::shared_ptr<Worker>& w, const lease::Owner& owner, Version version, int camera,
                   std::vector<Event> events, std::uint64_t batch) {
  if (now_ < store_down_until_ || now_ < store_stalled_until_) return;
  lease::LeaseRow row = store_->row(cameras_[static_cast<size_t>(camera)]);
  if (options_.planted == Planted::fence_as_snapshot) {
    in(rng_.between(0s, 3s), [=, this, &node] { insert(node, w, camera, version, events, row, owner, batch); });
    return;
  }
  insert(node, w, camera, version, events, row, owner, batch);
}

void World::insert(Node& node, const std::shared_ptr<Worker>& w, int camera, Version version,
                   const std::vector<Event>& events, const lease::LeaseRow& row, const lease::Owner& owner,
                   std::uint64_t batch) {
  bool current = row.version == version && !row.released && row.owner == owner;
  if (options_.planted == Planted::fence_by_highest_seen) {
    current = version >= highest_seen_[camera];
    highest_seen_[camera] = std::max(highest_seen_[camera], version);
  }
  if (current)
    for (const Event& event : events)
      if (accepted_.insert(event.id).second) {
        note(event.id);
        checks_->accepted(now_, cameras_[static_cast<size_t>(camera)], version, event.captured);
      }
  if (lost(node) || now_ < node.cut_in_until) return;
  in(latency(), [=, this, &node] {
    deliver(w, [=, this, &node] {
      if (w->batch != batch) return;
      w->in_flight = false;
      if (!current) return;  // the version is not the row's: the manager will hear why
      auto& spool = node.disk[static_cast<size_t>(camera)].events;
      while (!spool.empty() && spool.front().id <= events.back().id) spool.pop_front();
      pump(node, w);
    });
  });
}

// ---- the run ----

bool World::all_streaming() {
  for (size_t c = 0; c < cameras_.size(); ++c) {
    bool reachable = std::ranges::any_of(nodes_, [&](const auto& n) { return n->reaches[c]; });
    if (reachable && checks_->last_accepted(cameras_[c]) < now_ - 4 * kSecond) return false;
  }
  for (const auto& node : nodes_)
    for (size_t c = 0; c < cameras_.size(); ++c)
      if (node->disk[c].events.size() > 6 && node->manager && node->manager->workers[c]) return false;
  return true;
}

Outcome World::run() {
  schedule_faults();
  // The control planes: as long as the store answers, lease time is moved on.
  std::function<void()> tick = [&] {
    if (now_ >= store_down_until_ && now_ >= store_stalled_until_) store_->tick();
    in(lease::kTickEvery, tick);
  };
  tick();
  // A worker that was refused a token asks again.
  std::function<void()> tokens = [&] {
    for (auto& node : nodes_)
      if (auto m = node->manager; m && m->alive && !m->paused)
        for (size_t c = 0; c < cameras_.size(); ++c)
          if (m->workers[c] && m->workers[c]->alive && m->holders[c].phase == lease::Phase::holding &&
              m->token_for[c] != m->holders[c].grant)
            pay_and_dial(*node, m, static_cast<int>(c), m->holders[c].grant);
    in(1s, tokens);
  };
  tokens();

  TrueTime limit = faults_end_ + 300 * kSecond;
  TrueTime looked = 0;
  while (!queue_.empty() && !checks_->violation()) {
    Scheduled next = std::move(const_cast<Scheduled&>(queue_.top()));
    queue_.pop();
    now_ = next.when;
    ++events_;
    next.what();
    if (now_ > faults_end_ + 5 * kSecond && now_ > looked + kSecond / 2) {
      looked = now_;
      if (all_streaming()) break;
    }
    if (now_ > limit) {
      checks_->fail(now_, "not every reachable camera is streaming 300 s after the faults stopped");
      break;
    }
  }
  return {checks_->violation(), hash_, events_};
}

}  // namespace

Outcome run(const Options& options) { return World(options).run(); }

}  // namespace weir::sim
