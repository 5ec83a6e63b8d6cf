// Backend: one process of a detector cluster. Any number run together; the one that holds the cluster's lease is the
// master, and drives the workers.
//
// It asks for the lease for as long as it runs. While the lease is its own and its right lasts, it is in a term: it reads
// what is desired after every announced change and now and then besides, hands it to a Master, and passes on what the
// workers see: to the bus under the lease's version, and to all processes of the cluster over Coordination. Each word of
// a term asks the right first. A term ends when the lease is lost or its right has passed; the connections to the workers
// are closed then, and the next master adopts what they run. A camera whose own version is above the cluster's makes the
// master rotate its lease. To products every process is the same (Front): one that is not the master asks the master. No
// rule stands here. Loop thread only.
#pragma once

#include "weir/cluster/front.hpp"
#include "weir/cluster/master.hpp"

#include "weir/base/random.hpp"
#include "weir/lease/holder.hpp"
#include "weir/ports/cluster_plane.hpp"
#include "weir/ports/coordination.hpp"
#include "weir/ports/event_bus.hpp"

namespace weir::cluster {

struct BackendPorts {
  ClusterPlane& plane;
  EventBus& bus;
  DetectorLink& link;
  Coordination& coordination;
  Clock& clock;
};

struct BackendSettings {
  lease::Owner owner;
  ClusterId cluster;
  TenantId tenant = {};  // empty: the cluster serves all tenants
  lease::HolderPolicy lease = {.kind = lease::Kind::cluster};
  MasterSettings master = {};
  Duration look_every = 30s;
  std::function<double()> draw = random_unit;  // spreads the pauses before dials; uniform in [0, 1)
};

class Backend final : public Front {
 public:
  Backend(boost::asio::io_context& io, BackendPorts ports, net::Metrics& metrics, BackendSettings settings);
  ~Backend() override;
  Backend(const Backend&) = delete;

  // Until `stop`; then the lease is given back, if the control plane answers soon.
  boost::asio::awaitable<void> run();
  void stop();
  // The control plane has answered once.
  bool ready() const;
  bool is_master() const;

  std::unique_ptr<Hearing> listen(std::string after, std::function<void(const Notice&)> each,
                                  std::function<bool()> has_room = {}) override;
  Async<boost::json::object> state() override;
  Async<std::string> state_text() override;
  Async<Nothing> regenerate(std::string reason) override;
  Async<Nothing> set_session(std::string display, std::optional<std::int64_t> session) override;
  Async<Nothing> answer_patch(PatchSessionResult result) override;
  Async<Nothing> resubscribe(std::string camera) override;
  Async<std::vector<std::string>> workers_of(std::string camera) override;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace weir::cluster
