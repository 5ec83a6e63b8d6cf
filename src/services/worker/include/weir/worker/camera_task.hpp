// CameraTask: one camera's thread: dial, read, decode in proportion, gate, offer.
//
// The thread goes on until it is stopped: it reports every failure with its code, and tries again when the policy of
// that code says. Settings that can change without a new connection (zones, thresholds, max_fps, gate) are taken from
// the newest Source at the next picture. `stop` interrupts what blocks; a thread that hangs in a name lookup is left
// behind and ends with the process. All methods: any thread.
#pragma once

#include "weir/worker/camera_status.hpp"
#include "weir/worker/dial_limiter.hpp"
#include "weir/worker/reporter.hpp"
#include "weir/worker/scheduler.hpp"

#include <thread>

namespace weir::worker {

struct DialRequest {
  CameraId camera;
  Secret url;
  camera::Transport transport = camera::Transport::tcp;
  std::optional<Duration> snapshot_interval = {};   // the URL is fetched again and again
};
using SourceFactory = std::function<Result<std::unique_ptr<VideoSource>>(const DialRequest& request)>;

struct CameraParts {
  SourceFactory open;
  DialLimiter& dials;
  Scheduler& scheduler;
  Reporter& reporter;
  double adaptive_keyframe_max_s = 1.0;
  Duration patience = 60s;  // no call into the stream's library takes longer, unless it hangs
  std::shared_ptr<Custody> custody = {};  // in which its pictures are taken
};

class CameraTask {
 public:
  struct State;  // shared with the thread, which may outlive this
  // Dials when `before`, the task that had the camera until now, has hung up: many recorders allow one connection.
  // Goes on counting where that task ended.
  CameraTask(Source source, std::shared_ptr<CameraStatus> status, const CameraParts& parts,
             std::shared_ptr<CameraTask> before = {});
  ~CameraTask();
  CameraTask(const CameraTask&) = delete;

  std::shared_ptr<const Source> source() const;
  // Takes effect at the next picture; the new source must need no new connection (`Source::same_dial`).
  void change(Source source);
  // A paused camera lets go of its connection and does nothing until it is resumed.
  void pause(bool paused);
  void stop();
  bool ended() const;
  // How long the thread is overdue: it hangs. Not positive while all is well.
  Duration late(Instant now) const;

 private:
  static void run(const std::shared_ptr<State>& state);
  std::shared_ptr<State> state_;
};

}  // namespace weir::worker
