// Scheduler: which picture is looked at next.
//
// Every camera has a mailbox of one picture: a newer one replaces an older one that nobody has taken (drop oldest), so a
// slow detector costs pictures, never delay. Only pictures that were decoded after the fact come all at once and show
// what the newest does not: they wait beside each other, in their order, for a moment and within a bound.
//
// Cameras with a picture stand in a queue, each once, and go to its end when they offer the next: a busy camera cannot
// starve another. One picture of a camera is looked at at a time, so that its events keep their order. `take` hands out
// at once what is there (eager), together with others of the same model where the detector gains from a batch. Any
// thread.
#pragma once

#include "weir/ports/video_source.hpp"
#include "weir/worker/custody.hpp"
#include "weir/worker/shard_config.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>

namespace weir::worker {

struct Work {
  std::shared_ptr<const Source> source;
  PicturePtr picture;
  Duration handled{};    // from the decoder to the mailbox
  Instant kept_until{};  // before that, no newer picture replaces it
  std::int64_t frame_id = 0;  // the picture's number, counted on over connections
  std::shared_ptr<Custody> custody = {};  // in which it may be spoken of
};

class Scheduler {
 public:
  // How many pictures that nobody had taken were replaced.
  size_t offer(Work work);
  // Waits for work: at least one picture, at most `most(model)` of cameras with the same model. Empty when stopped.
  std::vector<Work> take(const std::stop_token& stop, const std::function<size_t(const camera::Model&)>& most);
  // The camera's picture was looked at; its next one may be.
  void done(const CameraId& camera);
  // Forgets the camera's pictures.
  void withdraw(const CameraId& camera);
  size_t waiting() const;

  static constexpr size_t kWaitingMax = 16;         // pictures of a camera
  static constexpr size_t kPixelsMax = 100'000'000; // of all pictures that wait: 150 MB

 private:
  bool full(const std::deque<Work>& mailbox) const;

  mutable std::mutex mutex_;
  std::condition_variable_any arrived_;
  std::deque<CameraId> queue_;
  std::map<CameraId, std::deque<Work>> mailboxes_;  // none is empty; of those in the queue or being looked at
  std::set<CameraId> looked_at_;
};

}  // namespace weir::worker
