// Intake: reads the input, and keeps what the destination has no room for, within bounds.
//
// While the stream is forwarded, the thread that writes also reads: one packet after the other, without a hand-over. While
// there is no destination to write to, a thread of the intake's own goes on reading, so that the hub does not wait,
// and the queue holds what came since the last picture that can be decoded by itself. A queue that is full, by bytes or by
// time, is emptied up to the newest such picture: a slow destination costs pictures, and no more than these bounds of memory
// and delay.
// One thread uses it; `interrupt` may be called from any.
#pragma once

#include "weir/ports/media_copy.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

namespace weir::egress {

struct IntakeLimits {
  size_t bytes_max = 16 << 20;
  Duration span_max = 4s;
};

class Intake {
 public:
  // `input` is open. `video`: whether pictures decide where a stream may begin. Reads by itself from the start.
  Intake(std::unique_ptr<CopyInput> input, bool video, IntakeLimits limits = {});
  ~Intake();  // hangs up
  Intake(const Intake&) = delete;

  // From now on the caller reads the input. The queue begins with a picture that can be decoded by itself. Waits for
  // the packet that is just being read.
  void begin_taking();
  void stop_taking();
  bool taking() const { return taking_; }
  // Reads one packet into the queue.
  void read();
  // The oldest packet of the queue; null where there is none.
  const CopyPacket* oldest() const;
  CopyPacketPtr take();
  // Why the input ended, where it did. Packets that were read before may still be taken.
  std::optional<Error> ended() const;
  void interrupt() { input_->interrupt(); }
  std::uint64_t dropped() const;

 private:
  void read_by_itself();
  void accept(CopyPacketPtr packet);
  void drop_to_newest_start();
  void drop_oldest();

  const std::unique_ptr<CopyInput> input_;
  const bool video_;
  const IntakeLimits limits_;
  // Guards what the reading thread and the user of the intake share.
  mutable std::mutex mutex_;
  std::deque<CopyPacketPtr> queue_;
  size_t bytes_ = 0;
  std::uint64_t dropped_ = 0;
  bool need_start_ = true;
  std::optional<Error> end_;
  std::atomic<bool> taking_ = false;
  std::thread thread_;
};

}  // namespace weir::egress
