// Results: what the cluster's workers see, published as `detections.…` events under the version of the cluster's lease.
//
// In order, each batch until it is known what became of it. What waits is bounded. Loop thread only.
#pragma once

#include "lease_keeper.hpp"

#include "weir/cluster/worker_protocol.hpp"
#include "weir/event/event.hpp"
#include "weir/net/metrics.hpp"
#include "weir/ports/event_bus.hpp"

#include <deque>

namespace weir::cluster {

class Results {
 public:
  Results(boost::asio::io_context& io, EventBus& bus, LeaseKeeper& lease, Clock& clock, net::Metrics& metrics,
          RunnerId process)
      : bus_(bus), lease_(lease), clock_(clock), metrics_(metrics), process_(std::move(process)), alarm_(io, clock) {}
  ~Results();

  // `worker`: its address without credentials.
  void take(const std::string& worker, const ImageDetection& detection, const ClusterWish& wish);
  void count_lost(std::string_view why, size_t many);
  boost::asio::awaitable<void> run();  // until `stop`; it sends only while the lease is valid
  void stop() {
    stopping_ = true;
    alarm_.ring();
  }

 private:
  struct Seen {
    CameraId camera;
    event::Event event;
  };
  EventBus& bus_;
  LeaseKeeper& lease_;
  Clock& clock_;
  net::Metrics& metrics_;
  const RunnerId process_;
  Alarm alarm_;
  std::deque<Seen> waiting_;
  bool stopping_ = false;
};

}  // namespace weir::cluster
