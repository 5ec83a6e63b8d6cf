// A detector cluster in the simulated world: two or three hosts with a process each, the product's own, over simulated
// ports; detection workers, a Redis, rows that change, and products that listen.
//
// cluster_world.cpp sets it up, breaks it and judges its rest; cluster_process.cpp is a process and the control plane
// as it sees it; detectors.hpp and sim_redis.hpp are what else it talks to. One thread.
#pragma once

#include "detectors.hpp"
#include "neighbour.hpp"
#include "sim_redis.hpp"

namespace weir::sim {

struct ClusterFaults : NetworkFaults {
  bool cuts, kills, stops, pauses, unauthorized, clock_rates, revocations, redis_away, redis_cuts, redis_breaks,
      redis_emptied, worker_crashes, worker_pauses, worker_cuts, half_open, deaf, loads;
  explicit ClusterFaults(Rng& rng) {
    for (bool* each : {&loss, &delay, &duplication, &cuts, &kills, &stops, &pauses, &unauthorized, &clock_rates,
                       &revocations, &redis_away, &redis_cuts, &redis_breaks, &redis_emptied, &worker_crashes,
                       &worker_pauses, &worker_cuts, &half_open, &deaf, &loads})
      *each = rng.chance(0.4);
  }
};

// What listens at a process, and when that is gone or it likes to, at another one from where it was.
struct Product {
  int number = 0;
  std::string place;  // the last detection that it was told
  ClusterProcessPtr at;
  std::unique_ptr<cluster::Hearing> hearing;
};

class ClusterWorld final : public Neighbour {
 public:
  // Whether there is a cluster in the world of these options.
  static bool exists(const Options& options);

  ClusterWorld(const Options& options, Surroundings around);
  ~ClusterWorld() override;
  ClusterWorld(const ClusterWorld&) = delete;
  void begin() override;
  // Workers run exactly what is desired, results are accepted, and every product hears them.
  bool at_rest() const override;
  Duration rest_within() const override;
  std::string_view unrest() const override { return "a cluster does not run what is desired, or nobody hears of it"; }
  void describe() override;

 private:
  class Plane;
  class Bus;
  using Reply = Network::Reply;
  using Answers = std::vector<lease::Answer>;
  using Confirmations = std::vector<Confirmation>;

  // ---- set-up and faults: cluster_world.cpp ----
  void fault();
  void break_process(ClusterHost& host, int which);
  void break_redis(ClusterHost& host, int which);
  void break_worker(int which);
  void heal();
  ClusterHost& any_host() { return *hosts_[static_cast<size_t>(rng_.below(static_cast<int>(hosts_.size())))]; }
  void change_rows();
  void put_row(const std::string& id);
  void look_at_overlaps();
  bool one_could_tell(int one, int other) const;
  bool is_planted(Planted fault) const { return options_.planted == fault; }

  // ---- processes: cluster_process.cpp ----
  void start(ClusterHost& host);
  void start_later(ClusterHost& host, Duration delay);
  void stop(ClusterHost& host);
  void end(ClusterHost& host, const ClusterProcessPtr& p);
  void die(ClusterProcess& p);
  WorldClock::World clock_of(const ClusterHost& host, const ClusterProcessPtr& p);
  cluster::BackendSettings settings_of(const ClusterProcess& p);
  std::unique_ptr<ClusterPlane> plane_for(ClusterHost& host, const ClusterProcessPtr& p);
  std::unique_ptr<EventBus> bus_for(ClusterHost& host, const ClusterProcessPtr& p);
  void listen(Product& product);
  void move_on(Product& product);
  void leave(Product& product);
  void hear(Product& product, int process, const cluster::Notice& notice);
  // To the control plane; `work` runs where the store is, `hear` in the process. It is given up after a while.
  template <class T>
  asio::awaitable<Result<T>> consult(ClusterHost& host, ClusterProcessPtr p, std::function<Result<T>()> work,
                                     std::function<void(const T& answer)> hear = [](const T&) {}) {
    return ask<T>([this, &host, p, work = std::move(work), hear = std::move(hear)](Done<T> done) {
      auto serve = [p, work, hear, done]() -> Reply {
        return [p, hear, done, answer = work()] {
          think(p, [hear, done, answer] {
            if (answer) hear(*answer);
            done(answer);
          });
        };
      };
      auto refused = [p, done] {
        think(p, [done] { done(no_answer()); });
      };
      network_.request(host, p, serve, refused);
      time_.in(2s, refused);
    });
  }
  Answers serve_leases(const lease::Batch& batch);
  void hear_leases(const ClusterHost& host, const ClusterProcess& p, TrueTime asked, const Answers& answers);
  Confirmation accept(const ClusterProcess& p, const event::Event& event, TrueTime said);
  void announce_rows();
  static void break_feeds(ClusterProcess& p);

  const Options options_;
  Timeline& time_;
  SimStore& store_;
  Checks& all_checks_;
  const Troubles& troubles_;
  Rng rng_;
  ClusterFaults faults_;
  Network network_;
  ClusterChecks checks_;
  SimRedis redis_;
  std::unique_ptr<Detectors> workers_;
  std::vector<std::unique_ptr<ClusterHost>> hosts_;
  std::map<std::string, ClusterWish> rows_;  // by subscription
  std::vector<Product> products_;
  std::set<std::string> event_ids_;  // that the control plane has accepted
  cluster::BackendSettings settings_;
  int processes_ = 0;
};

}  // namespace weir::sim
