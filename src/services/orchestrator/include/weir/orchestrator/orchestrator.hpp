// Orchestrator: turns what MediaMTX says of publishers into one worker and at most one forwarder a stream.
//
// It hears of publishers by hooks and by looking at MediaMTX's list of paths, keeps one machine (stream::step) a stream,
// and performs what the machine answers: leases are asked for at the StreamPlane, processes are started by the
// KeptHost. No rule stands here. What must survive its own end is told to the plane under the stream's lease; children
// live on without it, and the next orchestrator of the same boot adopts them. Loop thread only.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/base/random.hpp"
#include "weir/lease/holder.hpp"
#include "weir/net/metrics.hpp"
#include "weir/orchestrator/programs.hpp"
#include "weir/ports/kept_host.hpp"
#include "weir/ports/media_server.hpp"
#include "weir/ports/stream_plane.hpp"
#include "weir/stream/machine.hpp"

#include <functional>
#include <map>
#include <memory>

namespace weir::orchestrator {

struct OrchestratorPorts {
  StreamPlane& plane;
  KeptHost& children;
  MediaServer& media;
  Clock& clock;
};

struct OrchestratorSettings {
  lease::Owner owner;
  lease::Home home;
  lease::HolderPolicy lease{.ttl = 30s, .kind = lease::Kind::stream};
  stream::Policy policy = {};
  Duration look_every = 3s;
  bool destination_in_query = false;
  std::map<stream::StreamId, stream::Wishes> file = {};  // the streams file
  Programs programs = {};
  std::function<double()> draw = random_unit;  // for the delays of restarts; uniform in [0, 1)
};

class Orchestrator {
 public:
  Orchestrator(boost::asio::io_context& io, OrchestratorPorts ports, net::Metrics& metrics,
               OrchestratorSettings settings);
  ~Orchestrator();
  Orchestrator(const Orchestrator&) = delete;

  // Adopts what an earlier orchestrator of this boot left running, then follows MediaMTX and operators until `stop`.
  boost::asio::awaitable<void> run();
  // Ends `run`. The children live on, each until its deadline.
  void stop();
  // Winds every stream down, as an operator's stop does; `run` goes on until then, at most for `within`.
  boost::asio::awaitable<void> stop_streams(Duration within);

  // What a hook said. Handled after this call has returned.
  void hear(const stream::Hook& hook, bool ready);
  void order(const StreamOrder& order);

  // The state is known: what was left running has been adopted, and the plane has answered once.
  bool ready() const;
  // What people read, by stream.
  boost::json::object view(const stream::StreamId& id) const;  // empty where there is no such stream
  std::vector<boost::json::object> views() const;
  const lease::Owner& owner() const;
  // The children that serve metrics, and the metrics of one of them.
  std::vector<std::pair<stream::StreamId, stream::Role>> measured() const;
  boost::asio::awaitable<Result<std::string>> child_metrics(stream::StreamId id, stream::Role role) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace weir::orchestrator
