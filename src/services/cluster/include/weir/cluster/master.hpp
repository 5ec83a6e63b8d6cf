// Master: drives the detection workers of a cluster for one term of mastership.
//
// It keeps one connection to each worker, compares what is desired with what the workers report, and carries out the
// difference as placement::plan decides it: after every change of what is desired, whenever a worker comes or goes or does
// not run what it was given, and every `plan_every` besides. A worker that loses a subscription is told so before another
// gets it, and what it still says about it is dropped. Everything that others hear of it, it says by its Voice. No rule
// stands here. A term ends with the lease: `may_act` is asked before each message, and a master that may not act any more
// sends nothing and closes its connections. Loop thread only.
#pragma once

#include "weir/base/agenda.hpp"
#include "weir/base/alarm.hpp"
#include "weir/cluster/link.hpp"
#include "weir/cluster/report.hpp"
#include "weir/net/metrics.hpp"
#include "weir/placement/plan.hpp"
#include "weir/ports/detector_link.hpp"

#include <functional>

namespace weir::cluster {

struct MasterSettings {
  std::vector<std::string> workers;  // their addresses
  int capacity = 100;                // subscriptions a worker
  Duration plan_every = 30s;
  // How long a new master waits for its workers' first reports before it plans. What two workers run until then, because
  // a predecessor gave it to both, may run twice for five seconds at most.
  Duration settle = 4s;
  placement::Policy placement = {};
  LinkPolicy link = {};
};

struct MasterPorts {
  DetectorLink& link;
  // An address from which workers can fetch the model for a while.
  std::function<Async<Secret>(const DesiredSubscription& wanted)> model_url;
  Clock& clock;
  std::function<double()> draw;  // uniform in [0, 1)
};

// What others hear from the master, and whether it still is one.
struct Voice {
  std::function<bool()> may_act;
  std::function<void(const std::string& worker, const ImageDetection& detection)> detected;
  std::function<void(const std::string& worker, const StateReport& report)> reported;
  std::function<void(const std::string& worker, const PatchSession& patch)> patched;
  std::function<void(const std::string& worker, const Tell& tell)> told;
  std::function<void()> changed;  // placements or connections
};

class Master {
 public:
  Master(boost::asio::io_context& io, MasterPorts ports, net::Metrics& metrics, MasterSettings settings, Voice voice);
  ~Master();
  Master(const Master&) = delete;

  // Everything that is desired from now on.
  void desire(DesiredSubscriptions desired);
  // Has every subscription of this camera given to its worker anew, with a fresh address of its model; those that have
  // failed are tried again. How many there are.
  size_t resubscribe(const std::string& camera);
  // Keeps connections and time until `stop`; returns when nothing of it runs any more.
  boost::asio::awaitable<void> run();
  void stop();
  // Tells the worker that has the subscription; an error where none has it.
  Status send_to_holder(const std::string& subscription, const Command& command);
  // Tells this worker; false where it is not connected.
  bool send_to(const std::string& worker, const Command& command);
  // Tells every connected worker.
  void send_to_all(const Command& command);

  const placement::World& world() const;
  const DesiredSubscriptions& desired() const;
  LinkState state_of(const std::string& worker) const;
  const StateReport* report_of(const std::string& worker) const;  // the last one of this connection; null before it
  struct Seen {
    WallTime connected{}, last_report{};
  };
  Seen seen(const std::string& worker) const;
  // Where workers were last told to fetch the model from, without its signature; "" before that.
  std::string model_address(std::int64_t model) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace weir::cluster
