// Worker: a shard's cameras from their configuration to their events, in one process.
//
// It owns a task for each camera, the inference pool and what they share; the outlet, a publisher or what stands in its
// place, belongs to the code that made the worker. Cameras come and go live, one without touching another. It decides
// nothing about ownership: leases are handed to it with absolute deadlines, and without one it decodes and detects but
// publishes nothing. Usage: construct, `add` sources, spawn `run`, end with `drain`. Loop thread only.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/link/look.hpp"
#include "weir/ports/detector.hpp"
#include "weir/worker/camera_task.hpp"
#include "weir/worker/inference.hpp"

#include <algorithm>
#include <set>

namespace weir::worker {

struct WorkerSettings {
  int readiness_quorum_pct = 80;
  Duration summary_interval = 5s;
  Duration outage_grace = 300s;
  double adaptive_keyframe_max_s = 1.0;
  int dials_at_once = 8;  // of one site
  std::string dials_file = {};
  int inference_threads = 1;
  Duration patience = 60s;  // a thread that is in one call for longer hangs
};

// The exit code of a worker whose cameras cannot all have a thread: a new start may succeed later, or on another
// machine.
inline constexpr int kExitNoThreads = 40;

struct Readiness {
  int cameras = 0;
  int delivering = 0;
  bool ready = false;
};

// A thread of the pipeline that hangs or has ended, by the camera it served.
struct Trouble {
  CameraId camera;
  std::string what;
};

// After an outage that lasted for the whole grace, database, control plane and runner need a moment to find each other
// again: no camera is stopped just before the answer comes.
constexpr Duration with_recovery(Duration grace) { return grace + std::min<Duration>(15s, grace / 20); }

class Worker {
 public:
  // Ends the process where the system gives it too few threads.
  Worker(Clock& clock, net::Metrics& metrics, Outlet& outlet, const ShardConfig& shard, WorkerSettings settings,
         SourceFactory open, DetectorFactory detectors);
  ~Worker();
  Worker(const Worker&) = delete;

  // Adds a camera, or changes the one of that name: without a new connection where the dial is the same.
  void add(Source source);
  // Stops the camera at once, so that nothing is said of it any more unless it is added again; the coroutine waits
  // until nothing of it is in flight. The last capture time that was emitted.
  boost::asio::awaitable<std::optional<WallTime>> remove(CameraId camera);
  void grant(const LeaseGrant& lease);
  // Another owner has the camera: what this worker spooled for it is dropped.
  void lose(const CameraId& camera);
  // The bus refuses this version. Only the worker knows whether the camera has a newer version by now.
  void refused(const CameraId& camera, lease::Version version);
  // Publishes nothing more for a camera, and goes on decoding its stream.
  boost::asio::awaitable<std::optional<WallTime>> silence(CameraId camera);
  void set_activated() { standby_ = false; }

  Readiness readiness() const;
  std::vector<Trouble> troubles() const;
  bool standby() const { return standby_; }
  bool draining() const { return draining_; }
  // Every camera of this worker was lost to another owner.
  bool lost_all() const { return tasks_.empty() && lost_any_; }
  // The state as people read it.
  json::object state() const;
  // The state as the worker's manager reads it.
  link::Look look() const;
  PicturePtr latest(const CameraId& camera) const;
  double max_fps() const { return max_fps_; }

  // Takes care of summaries, gauges, outages and left-behind threads, until it is cancelled.
  boost::asio::awaitable<void> run();
  // Stops every camera and hands their last statuses to the publisher; true if all threads ended in time.
  boost::asio::awaitable<bool> drain(Instant until);

 private:
  struct Camera {
    std::shared_ptr<CameraTask> task;
    std::shared_ptr<CameraStatus> status;
    std::shared_ptr<Custody> custody;
    std::optional<LeaseGrant> lease = {};
    bool paused = false;
    Instant next_summary{};
    bool attention_known = false;
  };
  void start(Source source, std::optional<LeaseGrant> lease, std::shared_ptr<Custody> custody,
             std::shared_ptr<CameraTask> before);
  void stop_task(CameraId camera);  // by value: its own key goes with it
  // Gives the camera up for good: nothing that it has seen is published any more.
  void give_up(CameraId camera);
  std::shared_ptr<CameraTask> ending(const CameraId& camera) const;
  boost::asio::awaitable<std::optional<WallTime>> follow_out(CameraId camera);
  void look_after(Camera& camera, Instant now);
  json::object describe(const Camera& camera, Instant now) const;

  Clock& clock_;
  Outlet& outlet_;
  const WorkerSettings settings_;
  const double max_fps_;
  const SourceFactory open_;
  Reporter reporter_;
  DialLimiter dials_;
  Scheduler scheduler_;
  bool standby_;
  bool draining_ = false;
  bool lost_any_ = false;
  std::set<CameraId> lost_;  // and not added again
  std::map<CameraId, Camera> tasks_;
  std::vector<std::shared_ptr<CameraTask>> ending_;
  // Inference threads look cameras up while the loop adds and removes them.
  mutable std::mutex statuses_mutex_;
  std::map<CameraId, std::shared_ptr<CameraStatus>> statuses_;
  std::unique_ptr<InferencePool> pool_;
};

}  // namespace weir::worker
