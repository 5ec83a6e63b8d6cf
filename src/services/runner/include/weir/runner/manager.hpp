// Manager: the shell around the brain: performs what it decides and tells it what came of it.
//
// Every long effect is a coroutine of its own, so that a renewal never waits behind a slow worker. It keeps the bus
// token of its workers fresh, beats once a second (control plane and bus), follows the feeds of leases and cameras and
// polls slowly beside them, looks at its workers, drops what dead ones spooled for cameras that others have by now, and
// keeps the list of cameras on disk, so that a runner restarted during an outage can say what it waits for. `run` until
// the brain says that it is over. Loop thread only.
#pragma once

#include "weir/net/client.hpp"
#include "weir/net/metrics.hpp"
#include "weir/ports/control_plane.hpp"
#include "weir/ports/event_bus.hpp"
#include "weir/ports/process_host.hpp"
#include "weir/ports/spool.hpp"
#include "weir/runner/brain.hpp"
#include "weir/runner/plane_watch.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

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
  std::string worker_program;
  std::vector<std::string> worker_arguments = {};
  std::string folder;                   // private: crash records, the list of cameras
  Duration heartbeat = 1s;
  Duration camera_poll = 5s;            // beside the feed
  Duration worker_look = 500ms;
  double cpu_high_pct = 100, mem_high_pct = 92;
  std::function<Usage(const std::vector<int>& pids)> usage;
  std::function<void(const BootId& boot, const Secret& will)> on_will;  // for whoever outlives this process
  std::function<void(const Secret& token)> use_bus_token;
  std::function<boost::asio::awaitable<std::vector<ModelLabels>>()> models = {};  // asked before it registers; bounded
  std::string control_plane_url;        // where workers publish; or several, with commas between
};

class Manager {
 public:
  // `spool`: where its workers keep theirs.
  Manager(boost::asio::io_context& io, Clock& clock, ControlPlane& plane, EventBus& bus, ProcessHost& host,
          Spool& spool, net::Metrics& metrics, ManagerSettings settings);
  ~Manager();
  Manager(const Manager&) = delete;

  // The exit code.
  boost::asio::awaitable<int> run();
  // Hands its cameras to others and ends; what is left at the deadline is let go at once.
  void stop(Duration grace);
  void binary_changed() { feed(BinaryChanged{}); }
  // Other times, and where the workers publish from now on.
  void change(const Policy& times, std::string control_plane_url);

  bool registered() const { return registered_; }
  const RunnerId& id() const { return owner_.runner; }
  Summary summary() const { return brain_.summary(); }
  // Everything about its cameras and workers, for a person.
  json::object state() const;
  struct WorkerAddress {
    std::string shard;
    std::string url;
  };
  // One for each shard: of two that share one during a rollout the one that speaks.
  std::vector<WorkerAddress> workers() const;
  // Its answer to GET `path`.
  boost::asio::awaitable<Result<net::ClientResponse>> ask_worker(std::string shard, std::string path);

 private:
  struct WorkerProcess;
  using WorkerPtr = std::shared_ptr<WorkerProcess>;

  void feed(const Event& event);
  void perform(Action action);
  void spawn(boost::asio::awaitable<void> work, std::string_view what);

  boost::asio::awaitable<void> ask_leases(AskLeases ask);
  boost::asio::awaitable<void> ask_token(AskToken ask);
  boost::asio::awaitable<void> ask_budget(SiteId site);
  boost::asio::awaitable<void> report_crash(CameraId camera);
  boost::asio::awaitable<void> run_worker(StartWorker order);
  boost::asio::awaitable<Status> bring_up(WorkerPtr worker, StartWorker order);
  boost::asio::awaitable<void> watch_worker(WorkerPtr worker);
  boost::asio::awaitable<void> tell(Tell message);
  Result<Told> read_told(const Tell& message, const net::ClientResponse& answer) const;
  json::object shard_document(const StartWorker& order) const;
  boost::asio::awaitable<CameraId> culprit(std::string crash_file);
  std::map<std::string, WorkerPtr> speaking(const Summary& now) const;  // by shard

  void tell_workers_the_bus();
  boost::asio::awaitable<void> tell_the_bus(WorkerPtr worker);
  void list_again();
  boost::asio::awaitable<void> join();
  boost::asio::awaitable<void> keep_time();
  boost::asio::awaitable<void> beat();
  void check_known(const Result<RunnerFlags>& heard);
  boost::asio::awaitable<void> keep_token();
  boost::asio::awaitable<void> list_cameras();
  boost::asio::awaitable<void> learn_holders();
  boost::asio::awaitable<void> keep_spools();
  boost::asio::awaitable<void> drop_left_spools();
  boost::asio::awaitable<void> follow(std::string pattern);
  void hear(const DeliveredEvent& event);
  boost::asio::awaitable<void> send_picture(CameraId camera, std::string request);
  void hear(const RunnerFlags& flags);
  void record(const Note& note);
  net::Counter& counted(const std::string& event);
  void measure();
  // What a person who asks for the state of the fleet is told of this runner's cameras that do not stream.
  static json::array waiting(const Summary& summary);
  void remember_cameras(const std::vector<DesiredCamera>& cameras);
  void explain_outage(const Error& why);

  boost::asio::io_context& io_;
  Clock& clock_;
  ControlPlane& plane_;
  EventBus& bus_;
  ProcessHost& host_;
  Spool& spool_;  // like all files touched on `disk_` alone: a disk that hangs must not hold up a renewal
  net::Metrics& metrics_;
  const ManagerSettings settings_;
  lease::Owner owner_;  // constant from registration on
  const Secret control_token_;
  Brain brain_;
  std::map<WorkerNumber, WorkerPtr> workers_;
  std::string bus_url_ = settings_.control_plane_url;
  Secret bus_token_;
  int bus_changes_ = 0;              // of either
  bool changed_meanwhile_ = false;   // the cameras, since they were last asked for
  boost::asio::steady_timer time_, cameras_due_, ended_;
  bool registered_ = false, listed_ = false;
  bool token_refused_ = false;       // as the feed heard; the workers' is of the same kind
  std::optional<Instant> stop_by_;
  bool drain_ordered_ = false, drained_ = false;
  int beats_unknown_ = 0;            // heartbeats in a row to a control plane that does not know this runner
  PlaneWatch watch_;
  std::optional<int> code_;
  int pictures_under_way_ = 0;
  json::array happened_;   // the last things worth a look
  Instant holders_due_{};  // not listed again before
  size_t remembered_ = 0;  // what was written to disk last
  std::atomic<bool> writing_ = false;
  boost::asio::thread_pool disk_{2};  // one of them may wait in the spool; the last member: joined before the others end
};

}  // namespace weir::runner
