// Manager: the shell around the brain: performs what the brain decides and tells it what came of it.
//
// Its parts, each in files of its own: membership (registration, tokens, heartbeats), feeds (which cameras there are,
// who has them), workers (processes at the other end of a link) and left spools (what dead workers kept). News on
// `lease.#` becomes the brain's LeaseNews. Every long effect is a coroutine of its own, so that a renewal never waits
// behind a slow worker. It reaches everything through ports and takes the time from the clock, so that tests and the
// simulator run it as it is, in a time of their own. `run` lasts until the brain ends the runner. Loop thread only.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/base/random.hpp"
#include "weir/net/metrics.hpp"
#include "weir/ports/control_plane.hpp"
#include "weir/ports/event_bus.hpp"
#include "weir/ports/runner_disk.hpp"
#include "weir/ports/worker_link.hpp"
#include "weir/runner/brain.hpp"

#include <boost/asio/io_context.hpp>

#include <functional>

namespace weir::runner {

// What this machine and the given processes use.
struct Usage {
  double cpu_pct = 0, mem_mb = 0;             // of the runner: its processes together
  double host_cpu_pct = 0, host_mem_pct = 0;  // of everything
};

struct ManagerSettings {
  Runner self;                          // what is registered; with the boot
  Policy policy = {};
  DesiredFilter filter = {};
  std::string folder;                   // private: where workers leave crash records and share their limit on dials
  Duration heartbeat = 1s;
  Duration camera_poll = 5s;            // beside the feed
  Duration worker_look = 500ms;
  double cpu_high_pct = 100, mem_high_pct = 92;
  std::function<Usage(const std::vector<int>& pids)> usage;
  std::function<void(const BootId& boot, const Secret& will)> on_will;  // for the parent, which outlives this process
  std::function<void(const Secret& token)> use_bus_token;
  std::function<boost::asio::awaitable<std::vector<ModelLabels>>()> models = {};  // asked before it registers; bounded
  std::string control_plane_url;        // where workers publish; or several, with commas between
  std::optional<link::Broker> broker = {};  // where they publish instead
  std::function<double()> draw = random_unit;            // spreads what many runners would do at once
  std::function<void(const Note& note)> on_note = {};    // what the brain notes, beside log and metrics
};

// The ports through which a manager reaches everything outside.
struct ManagerPorts {
  Clock& clock;
  ControlPlane& plane;
  EventBus& bus;
  WorkerHost& workers;
  RunnerDisk& disk;
};

class Manager {
 public:
  Manager(boost::asio::io_context& io, ManagerPorts ports, net::Metrics& metrics, ManagerSettings settings);
  ~Manager();
  Manager(const Manager&) = delete;

  // The exit code.
  boost::asio::awaitable<int> run();
  // Hands its cameras to other runners and ends; cameras that are left at the deadline are let go at once.
  void stop(Duration grace);
  void binary_changed();
  // Gives the manager other times, and other addresses where the workers publish from now on.
  void change(const Policy& times, std::string control_plane_url);

  bool registered() const;
  const RunnerId& id() const;
  const Brain& brain() const;
  // Everything about its cameras and workers, for a person; the workers are asked when somebody asks, and only then.
  boost::asio::awaitable<json::object> state();
  // The shards that have a worker. One worker answers for each: of the two that share a shard during a rollout, the
  // one that publishes.
  std::vector<std::string> shards() const;
  boost::asio::awaitable<Result<WorkerPage>> worker_page(std::string shard, std::string path);

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace weir::runner
