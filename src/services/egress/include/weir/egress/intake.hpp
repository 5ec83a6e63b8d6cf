// Intake: reads the input on a thread of its own, so that nothing at the destination ever slows the hub down.
//
// What was read waits in a queue that is bounded by bytes and by time. While nobody takes, it holds what came since the
// last picture that can be decoded by itself; a queue that is full is emptied up to the newest such picture, so that a slow
// destination costs pictures, never memory or delay. One thread takes; the rest may be called from any.
#pragma once

#include "weir/ports/media_copy.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace weir::egress {

struct IntakeLimits {
  size_t bytes_max = 16 << 20;
  Duration span_max = 4s;
};

class Intake {
 public:
  // `input` is open. `video`: whether pictures decide where a stream may begin.
  Intake(std::unique_ptr<CopyInput> input, bool video, IntakeLimits limits = {});
  ~Intake();  // hangs up
  Intake(const Intake&) = delete;

  // Taking begins with a picture that can be decoded by itself: for a new connection of the destination.
  void begin_taking();
  void stop_taking();
  // What waits, oldest first, up to kTakenMax; nothing where none came in time or `wake` was called; the failure that ended
  // the input, last. Sound beside pictures wakes nobody: it leaves with the next picture.
  static constexpr size_t kTakenMax = 16;
  using Taken = std::vector<CopyPacketPtr>;
  Result<Taken> take(Duration within);
  // Whether the input has ended and nothing is left of it.
  std::optional<Error> ended() const;
  void wake();
  std::uint64_t dropped() const;

 private:
  void run();
  // Whether whoever takes has something to do now.
  bool accept(CopyPacketPtr packet);
  void drop_to_newest_start();

  const std::unique_ptr<CopyInput> input_;
  const bool video_;
  const IntakeLimits limits_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<CopyPacketPtr> queue_;
  size_t bytes_ = 0;
  std::uint64_t dropped_ = 0;
  bool taking_ = false, need_start_ = true, woken_ = false;
  std::optional<Error> end_;
  std::thread thread_;
};

}  // namespace weir::egress
