// A process of a simulated detector cluster: the product's Backend, over ports that lead into the world. One thread.
#pragma once

#include "bell.hpp"
#include "network.hpp"

#include "weir/cluster/backend.hpp"

namespace weir::sim {

// Its coroutines go on only in `go_on`, and end with it where they stand: that is how a process dies.
struct ClusterMind {
  struct Ports {
    std::unique_ptr<Clock> clock;
    std::unique_ptr<ClusterPlane> plane;
    std::unique_ptr<EventBus> bus;
    std::unique_ptr<DetectorLink> link;
    std::unique_ptr<Coordination> coordination;
  };
  void go_on() {
    io.restart();
    while (io.poll() > 0) continue;
  }
  asio::io_context io{1};
  Ports ports;
  net::Metrics metrics;
  std::unique_ptr<cluster::Backend> backend;
};

// What a process follows of the bus.
struct Followed {
  std::function<bool(const DeliveredEvent&)> each;
  Done<Nothing> ended;
};

struct ClusterProcess : Process {
  int number = 0;  // among all processes of the world
  lease::Owner owner;
  std::vector<Followed> feeds;
  std::unique_ptr<ClusterMind> mind;
};
using ClusterProcessPtr = std::shared_ptr<ClusterProcess>;

struct ClusterHost : HostClock, Wire {
  int index = 0;
  RunnerId id;
  int boots = 0;
  TrueTime redis_cut_until = 0, workers_cut_until = 0;  // its ways to these; the wire leads to the control plane
  ClusterProcessPtr process;
  bool down = true;
};

// Runs `what` in the process and lets it go on. Never called from within the process.
template <class F>
void think(const ClusterProcessPtr& p, F what) {
  Timeline::deliver(p, [p, what = std::move(what)] {
    what();
    p->mind->go_on();
  });
}

inline Error no_answer(std::string_view reason = "unavailable") {
  return {Errc::unavailable, std::string(reason), "nothing is known", {}};
}

}  // namespace weir::sim
