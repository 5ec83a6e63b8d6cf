// Custody: the time for which a worker has a camera, from when it gets the camera to the camera's loss or removal.
//
// A new configuration does not end it, not even one that needs a new connection. A picture may be looked at for
// longer than the camera is held, and the camera may be back by then, under another lease: what the picture shows is
// published within the custody in which it was taken, or not at all. `end` waits for a `say` that is running;
// afterwards none is called. Any thread.
#pragma once

#include <mutex>

namespace weir::worker {

class Custody {
 public:
  // Calls `say` while the camera is held, otherwise not; it must not block.
  template <class Say>
  void speak(Say say) {
    std::lock_guard guard(mutex_);
    if (!ended_) say();
  }
  void end() {
    std::lock_guard guard(mutex_);
    ended_ = true;
  }

 private:
  std::mutex mutex_;
  bool ended_ = false;
};

}  // namespace weir::worker
