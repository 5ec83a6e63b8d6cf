// Watch: the bound of every blocking call of one source: an absolute deadline, and a stop from any thread.
//
// FFmpeg polls it about ten times a second. Once interrupted it stays so, and whatever is armed later ends at once;
// only `last_words` still allows a short goodbye (TEARDOWN), because a camera with few sessions must hear of the end.
// `meanwhile`, where set, is called on the source's thread about ten times a second while a call waits or works.
// `interrupt` may be called from any thread, the rest from the source's own.
#pragma once

#include "av.hpp"
#include "failures.hpp"

#include "weir/base/clock.hpp"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>

namespace weir::ffmpeg {

class Watch {
 public:
  void arm(Duration within) {
    deadline_ = boot_now() + within;
    farewell_ = false;
  }
  void last_words(Duration within) {
    deadline_ = boot_now() + within;
    farewell_ = true;
  }
  void interrupt() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    woken_.notify_all();
  }
  bool interrupted() const { return stop_; }
  Ended ended() const { return ended_at(boot_now()); }
  Ended ended_at(Instant now) const {
    if (stop_ && !farewell_) return Ended::by_interrupt;
    return now >= deadline_ ? Ended::at_deadline : Ended::by_itself;
  }
  // False where the wait was interrupted.
  bool wait(Duration for_long) {
    std::unique_lock lock(mutex_);
    return !woken_.wait_for(lock, for_long, [this] { return stop_.load(); });
  }
  AVIOInterruptCB callback() {
    return {[](void* self) { return static_cast<Watch*>(self)->asked() == Ended::by_itself ? 0 : 1; }, this};
  }
  std::function<void()> meanwhile;

 private:
  Ended asked() {
    Instant now = boot_now();
    if (meanwhile && now - called_ >= 100ms) {
      called_ = now;
      meanwhile();
    }
    return ended_at(now);
  }
  // Any thread.
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::condition_variable woken_;
  // The source's thread only.
  Instant deadline_{}, called_{};
  bool farewell_ = false;
};

}  // namespace weir::ffmpeg
