// Scheduler: which picture is looked at next.
//
// Every camera has a mailbox of one picture: a newer one replaces an older one that nobody has taken (drop oldest), so a
// slow detector costs pictures, never delay. Cameras with a picture stand in a queue, each once, and go to its end when
// they offer the next: a busy camera cannot starve another. One picture of a camera is looked at at a time, so that its
// events keep their order. `take` hands out at once what is there (eager), together
// with others of the same model where the detector gains from a batch. Any thread.
#pragma once

#include "weir/ports/video_source.hpp"
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
  Duration handled{};   // from the decoder to the mailbox
};

class Scheduler {
 public:
  // True if a picture that nobody had taken was replaced.
  bool offer(Work work);
  // Waits for work: at least one picture, at most `most(model)` of cameras with the same model. Empty when stopped.
  std::vector<Work> take(const std::stop_token& stop, const std::function<size_t(const camera::Model&)>& most);
  // The camera's picture was looked at; its next one may be.
  void done(const CameraId& camera);
  // Forgets the camera's picture.
  void withdraw(const CameraId& camera);
  size_t waiting() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable_any arrived_;
  std::deque<CameraId> queue_;
  std::map<CameraId, Work> mailboxes_;   // of those in the queue, and of those being looked at
  std::set<CameraId> looked_at_;
};

}  // namespace weir::worker
