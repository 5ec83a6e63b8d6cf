// CameraTask::State: what a camera's thread has, and what it shares with the owner of the task.
//
// The thread may outlive the task, so both hold the state. It also remembers from one connection to the next which of
// the camera's two streams is dialled: the main stream, or its substream where the main one's keyframes are too rare.
// The comments tell which thread may use which members.
#pragma once

#include "repeats.hpp"

#include "weir/worker/camera_task.hpp"
#include "weir/worker/pulse.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace weir::worker {

// Whether the configuration allows the substream: a camera of which every picture is wanted uses the main stream.
bool allows_substream(const Source& source);

struct CameraTask::State {
  State(Source s, std::shared_ptr<CameraStatus> st, const CameraParts& p)
      : parts(p), status(std::move(st)), source(std::make_shared<const Source>(std::move(s))) {}

  const CameraParts parts;
  const std::shared_ptr<CameraStatus> status;
  std::stop_source stop;
  std::atomic<bool> ended = false;
  std::atomic<bool> muted = false;  // another owner has the camera since: this thread publishes nothing more about it
  Pulse pulse;
  std::atomic<std::int64_t> frames = 0;  // received so far, also on former connections
  // Used by the camera's thread only.
  bool said_any = false;
  Repeats repeats;
  bool substream = false;                          // which stream is dialled
  Instant substream_from{};                        // not before
  bool substream_known = false;                    // the last pictures were its own
  int unreached = 0;                               // its dials since then; kUnreachedMax: the main stream has its try
  std::optional<camera::FrameSize> main_size = {};  // as far as known
  // Guards what follows.
  std::mutex mutex;
  std::condition_variable_any changed;
  std::shared_ptr<const Source> source;
  bool paused = false;
  VideoSource* dialled = nullptr;  // for interrupting what blocks

  bool stopping() const { return stop.stop_requested(); }
  bool leaving() {
    std::lock_guard guard(mutex);
    return paused || stopping();
  }
  std::shared_ptr<const Source> newest() {
    std::lock_guard guard(mutex);
    return source;
  }
  void set_state(StreamState state);
  // Reports what went wrong, and that the camera is tried again after `delay`.
  void say(const restart::StreamError& error, Duration delay);
  void use_substream(std::string why);
  void use_main(std::string why);
  // Called after a failure without a picture. True: the main stream is dialled at once.
  bool gives_substream_up(restart::StreamError& error);
  void wait(Duration how_long) {
    pulse.back_within(how_long + parts.patience);
    std::unique_lock lock(mutex);
    changed.wait_for(lock, stop.get_token(), how_long, [&] { return paused; });
  }
  void wait_while_paused() {
    pulse.waits();
    std::unique_lock lock(mutex);
    changed.wait(lock, stop.get_token(), [&] { return !paused; });
  }
  void end() {
    {
      std::lock_guard guard(mutex);
      ended = true;
    }
    changed.notify_all();
  }
  // Called by the thread that has the camera next.
  void wait_for_end(Duration most) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, most, [&] { return ended.load(); });
  }
};

}  // namespace weir::worker
