// Backend: one process of a detector cluster. Any number run together; the one that holds the cluster's lease is the
// master, and drives the workers.
//
// It asks for the lease for as long as it runs. While the lease is its own and its right lasts, it is in a term: it reads
// what is desired after every announced change and now and then besides, hands it to a Master, and publishes what the
// workers see under the lease's version. Each word of a term, to a worker or to the bus, asks the right first. A term ends
// when the lease is lost or its right has passed; the connections to the workers are closed then, and the next master
// adopts what they run. A camera whose own version is above the cluster's makes the master rotate its lease. No rule
// stands here. Loop thread only.
#pragma once

#include "weir/cluster/master.hpp"

#include "weir/event/event.hpp"
#include "weir/lease/holder.hpp"
#include "weir/ports/cluster_plane.hpp"
#include "weir/ports/event_bus.hpp"



namespace weir::cluster {

struct BackendPorts {
  ClusterPlane& plane;
  EventBus& bus;
  DetectorLink& link;
  Clock& clock;
};

struct BackendSettings {
  lease::Owner owner;
  ClusterId cluster;
  TenantId tenant = {};  // empty: the cluster serves all tenants
  lease::HolderPolicy lease = {.kind = lease::Kind::cluster};
  MasterSettings master = {};
  Duration look_every = 30s;
};

class Backend {
 public:
  Backend(boost::asio::io_context& io, BackendPorts ports, net::Metrics& metrics, BackendSettings settings);
  ~Backend();
  Backend(const Backend&) = delete;

  // Until `stop`; then the lease is given back, if the control plane answers soon.
  boost::asio::awaitable<void> run();
  void stop();
  // The control plane has answered once.
  bool ready() const;
  bool is_master() const;
  // What people and programs read of the cluster at this process.
  boost::json::object state() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace weir::cluster
