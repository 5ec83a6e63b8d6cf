// The simulated world's parts and how they hang together. world.cpp sets it up, breaks it and runs it; manager.cpp is
// the control plane as the product's manager sees it, links.cpp its workers and its disk, worker.cpp what a worker
// does. One thread.
#pragma once

#include "disk.hpp"
#include "faults.hpp"
#include "neighbour.hpp"
#include "voice.hpp"

#include "weir/runner/manager.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::sim {

using lease::Answer;
using lease::Batch;
using lease::Operation;
using lease::Version;

inline constexpr double kBucketCapacity = 4, kBucketRefill = 60;

// A camera in a worker: connected or not, with the right to speak or without.
struct Seat {
  Version version{};           // none: standing by, or silenced
  Version silenced{};          // an extension of this one comes too late
  bool streaming = false;
  int failures = 0;
  int life = 0;                // what was planned for a seat that was removed does not touch its successor
};

struct Worker : Process {
  int process = 0;             // names it among all processes of the world
  link::ShardConfig shard;     // what it was started with
  std::map<int, Seat> seats;
  std::optional<int> code;     // how it ended, once its manager may know
  std::vector<std::function<void(int code)>> at_end;  // what its manager waits for that ends with it
  std::unique_ptr<Voice> voice;

  // The locks that the worker held on the disk are released, and events that it had neither published nor written to
  // the disk are lost.
  void die() {
    if (voice) gone += voice->dropped() + voice->queued();
    alive = false;
    voice.reset();
  }
  std::uint64_t& gone;  // events, in the whole world
  explicit Worker(std::uint64_t& counter) : gone(counter) {}
};

// The product's manager, over ports that lead into the world. Its coroutines go on only in `go_on`, and end with it
// where they stand: that is how a process dies.
struct Mind {
  struct Ports {
    std::unique_ptr<Clock> clock;
    std::unique_ptr<ControlPlane> plane;
    std::unique_ptr<EventBus> bus;
    std::unique_ptr<WorkerHost> workers;
    std::unique_ptr<RunnerDisk> disk;
  };
  Mind(Ports given, runner::ManagerSettings settings)
      : ports(std::move(given)),
        manager(io, {*ports.clock, *ports.plane, *ports.bus, *ports.workers, *ports.disk}, metrics, std::move(settings)) {}
  void go_on() {
    io.restart();
    while (io.poll() > 0) continue;
  }
  asio::io_context io{1};
  const Ports ports;
  net::Metrics metrics;
  runner::Manager manager;
};

struct Manager : Process {
  lease::Owner owner;
  std::map<int, std::shared_ptr<Worker>> workers;  // by process
  std::map<Version, TrueTime> right;       // by version: when the right really ends
  std::map<int, Version> last_handed;      // planted: for one version in two processes
  std::map<CameraId, Answer> late;         // planted: answers to questions that were given up
  std::function<bool(const DeliveredEvent&)> feed;  // of leases, once the manager listens
  std::optional<int> code;                 // it has ended by itself
  std::unique_ptr<Mind> mind;
  const runner::Brain& brain() const { return mind->manager.brain(); }
};

struct Node : HostClock, Wire {
  int index = 0;
  RunnerId runner;
  Duration wall_step{};
  Disk disk;
  std::unique_ptr<Spool> look;    // at the disk, by nobody who writes
  std::shared_ptr<Manager> manager;
  std::vector<bool> reaches;
  bool down = false;
  RunnerFlags flags;
  std::map<std::string, CameraId> crash_records;  // by their file
};

class World : private Timeline {
 public:
  World(const World&) = delete;
  explicit World(const Options& options);
  ~World();

  Outcome run();

 private:
  // ---- time ----
  // The wall clock of the host, which a person may set.
  WallTime wall(const Node& n) const { return WallTime(local(n).time_since_epoch() + n.wall_step); }
  WallTime store_clock() const {
    return WallTime(std::chrono::hours(24 * 20000) + store_step_ +
                    Duration(static_cast<Duration::rep>(static_cast<double>(now()) * store_rate_)));
  }

  // ---- set-up and faults ----
  void make_nodes();
  void start_manager(Node& node);
  void schedule_faults();
  void fault();
  void kill_runner(Node& node, bool last_will);
  static void die(Manager& manager);
  void kill_worker(Node& node);
  void heal();

  // ---- network ----
  using Reply = Network::Reply;
  bool faulty() const { return network_.faulty(); }
  Duration latency() { return network_.latency(); }
  bool lost(Node& node) { return network_.lost(node); }
  bool fails() { return network_.fails(); }
  // A request to a control plane.
  void request(Node& node, const std::shared_ptr<Process>& from, std::function<Reply()> serve, Reply refused) {
    network_.request(node, from, std::move(serve), std::move(refused));
  }
  void remember_commits() {
    if (faults_.failovers && faulty()) store_->remember(now());
  }

  // ---- the manager ----
  using ManagerPtr = std::shared_ptr<Manager>;
  using WorkerPtr = std::shared_ptr<Worker>;
  class Plane;
  class Bus;
  class Host;
  class Link;
  class Files;
  WorldClock::World clock_of(Node& node, const ManagerPtr& m);
  std::unique_ptr<ControlPlane> plane_for(Node& node, const ManagerPtr& m);
  static std::unique_ptr<EventBus> bus_for(const ManagerPtr& m);
  std::unique_ptr<WorkerHost> host_for(Node& node, const ManagerPtr& m);
  std::unique_ptr<RunnerDisk> files_for(Node& node);
  runner::ManagerSettings settings_of(Node& node, const ManagerPtr& m);
  // Runs `what` in the manager's process and lets it go on.
  void think(Node& node, const ManagerPtr& m, std::function<void()> what);
  // A question of the manager; without an answer it is given up then.
  template <class T>
  asio::awaitable<Result<T>> question(Node& node, ManagerPtr m, Duration patience,
                                      std::function<void(Done<T> done)> begin) {
    return ask<T>([this, &node, m, patience, begin = std::move(begin)](Done<T> done) {
      begin(done);
      in(patience, [this, &node, m, done] {
        if (done.wanted()) think(node, m, [done] { done(Error{Errc::unavailable, "timeout", "no answer in time"}); });
      });
    });
  }
  // The same, to the control plane; `work` runs where the store is.
  template <class T>
  asio::awaitable<Result<T>> consult(Node& node, ManagerPtr m, std::function<Result<T>()> work) {
    return question<T>(node, m, 2s, [this, &node, m, work = std::move(work)](Done<T> done) {
      auto serve_it = [this, &node, m, work, done]() -> Reply {
        return [this, &node, m, done, answer = work()] { think(node, m, [done, answer] { done(answer); }); };
      };
      request(node, m, serve_it, [this, &node, m, done] { think(node, m, [done] { done(refusal()); }); });
    });
  }
  static Error refusal() { return {Errc::unavailable, "unavailable", "the control plane says nothing about it"}; }
  using Answers = std::vector<Answer>;
  void apply(Node& node, const ManagerPtr& m, const Batch& batch, const Done<Answers>& done);
  Answers serve_leases(const Batch& batch);
  Answer hear(Node& node, const ManagerPtr& m, std::uint64_t id, Answer answer, TrueTime asked);
  Result<Answers> refused(Node& node, const ManagerPtr& m, const Batch& batch);
  Result<BudgetAnswer> consume(const CameraId& camera, Version grant);
  DesiredCameras wanted();
  void observe(Node& node, const ManagerPtr& m, const runner::Note& note);
  WorkerPtr start_worker(Node& node, const ManagerPtr& m, const link::ShardConfig& shard);
  void get_ready(Node& node, const ManagerPtr& m, const WorkerPtr& w, const Done<Nothing>& done);
  void end_worker(Node& node, const ManagerPtr& m, int process, int code, const CameraId& culprit = {});
  void check_paid(const ManagerPtr& m, const CameraId& camera);
  using Told = Done<std::vector<link::LastWord>>;
  void tell(Node& node, const ManagerPtr& m, const WorkerPtr& w, const link::Message& message, const Told& told);
  Result<link::Look> look(const WorkerPtr& w) const;
  int index_of(const CameraId& camera) const {
    return static_cast<int>(std::ranges::find(cameras_, camera) - cameras_.begin());
  }

  // ---- the lease feed ----
  void announce(const CameraId& camera, bool free, const RunnerId& by, Version version);
  void announce_expiries();

  // ---- the worker ----
  void obey(Node& node, const ManagerPtr& m, const WorkerPtr& w, const link::Message& message, Duration left,
            const std::function<void(std::vector<link::LastWord> said)>& done);
  std::unique_ptr<Voice> make_voice(Node& node, const ManagerPtr& m, const WorkerPtr& w);
  // As `deliver`; the worker's publisher then runs before anything else does.
  void let_in(const WorkerPtr& w, std::function<void()> what) {
    deliver(w, [w, what = std::move(what)] {
      what();
      if (w->voice) w->voice->go_on();
    });
  }
  void give_right(Node& node, const ManagerPtr& m, const WorkerPtr& w, link::LeaseGrant right, Duration left);
  Seat& seat(Node& node, const WorkerPtr& w, int camera);
  Seat* find_seat(const WorkerPtr& w, int camera, int life) const;
  void dial(Node& node, const WorkerPtr& w, int camera, int life);
  void capture(Node& node, const WorkerPtr& w, int camera, int life);
  // ---- the sink ----
  struct Sent {
    lease::Owner owner;
    std::vector<event::Event> events;
    std::vector<lease::LeaseRow> rows;  // of their cameras, when they arrived
    Voice::Answer answer;
  };
  void write(Node& node, const ManagerPtr& m, const WorkerPtr& w, Sent sent);
  void arrive(Node& node, const WorkerPtr& w, Sent sent);
  void insert(Node& node, const WorkerPtr& w, const Sent& sent);
  void check_losses();
  void check_gap(int camera);

  bool all_streaming();
  void describe();
  // Within the last 20 s that the store was there: while it is away, lease time stands still.
  bool recent(TrueTime when) const {
    TrueTime away = 0;
    for (auto [from, to] : troubles_.away)
      away += std::max<TrueTime>(0, std::min(to, now()) - std::max(from, when));
    return now() - when - away < 20 * kSecond;
  }
  // Only one hold a minute: a store that comes and goes more often lets leases run out.
  bool store_unsteady() const {
    auto lately = [&](const auto& span) { return span.second > now() - 70 * kSecond; };
    return std::ranges::count_if(troubles_.away, lately) > 1;
  }

  const Options options_;
  Rng rng_;
  Faults faults_;
  Troubles troubles_;
  Network network_{*this, rng_, faults_, troubles_, [this] { remember_commits(); }};
  int processes_ = 0, boots_ = 0, configuration_ = 0, lives_ = 0;
  std::set<std::pair<CameraId, Version>> paid_;   // first connections
  std::set<lease::Owner> registered_;
  std::map<CameraId, Version> expiry_announced_;
  std::map<CameraId, int> crashes_;               // of workers, as the store counts them
  std::set<CameraId> unwanted_;                   // disabled by somebody

  std::vector<CameraId> cameras_;
  const SiteId site_ = SiteId::trusted("s");
  std::unique_ptr<SimStore> store_;
  std::unique_ptr<Checks> checks_;
  double store_rate_ = 1.0;
  Duration store_step_{};
  std::map<int, Version> highest_seen_;           // planted: the fence that remembers only the highest
  std::set<std::uint64_t> accepted_;
  std::set<std::uint64_t> owed_;    // events that were seen by somebody with the right to say so
  std::map<int, TrueTime> right_seen_;  // by camera: when somebody with that right saw it last
  int taken_over_ = 0;              // leases
  std::uint64_t gone_ = 0;          // events that were dropped and counted, or died with their process
  std::vector<TrueTime> captured_;  // by event
  std::vector<std::unique_ptr<Node>> nodes_;
  runner::Policy policy_;
  std::vector<std::unique_ptr<Neighbour>> neighbours_;  // not in every world
};

}  // namespace weir::sim
