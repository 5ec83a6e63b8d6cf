#include "weir/egress/intake.hpp"

#include <pthread.h>

namespace weir::egress {

namespace {
bool starts(const CopyPacket& packet, bool video) {
  return packet.key && (!video || packet.track == forward::Track::video);
}
}  // namespace

Intake::Intake(std::unique_ptr<CopyInput> input, bool video, IntakeLimits limits)
    : input_(std::move(input)), video_(video), limits_(limits) {
  stop_taking();
}

Intake::~Intake() {
  input_->interrupt();
  if (thread_.joinable()) thread_.join();
}

void Intake::read_by_itself() {
  while (!taking_ && !ended()) read();
}

void Intake::read() {
  auto packet = input_->read();
  std::lock_guard lock(mutex_);
  if (packet) accept(*std::move(packet));
  else end_ = packet.error();
}

void Intake::accept(CopyPacketPtr packet) {
  bool start = starts(*packet, video_);
  if (need_start_ && !start) {
    if (taking_) ++dropped_;
    return;
  }
  need_start_ = false;
  if (!taking_ && start && video_) {
    queue_.clear();  // nobody misses these: the destination is not connected
    bytes_ = 0;
  }
  bytes_ += packet->bytes;
  queue_.push_back(std::move(packet));
  bool full = bytes_ > limits_.bytes_max || queue_.back()->arrived - queue_.front()->arrived > limits_.span_max;
  if (full) drop_to_newest_start();
}

void Intake::drop_oldest() {
  bytes_ -= queue_.front()->bytes;
  queue_.pop_front();
}

// Where no packet after the first may begin a stream, the whole queue is dropped, and the intake waits for the next
// packet that may.
void Intake::drop_to_newest_start() {
  size_t keep = queue_.size();
  while (--keep > 0 && !starts(*queue_[keep], video_)) {
  }
  need_start_ = keep == 0;
  size_t dropped = keep == 0 ? queue_.size() : keep;
  dropped_ += dropped;
  for (; dropped > 0; --dropped) drop_oldest();
}

void Intake::begin_taking() {
  taking_ = true;
  if (thread_.joinable()) thread_.join();
  std::lock_guard lock(mutex_);
  while (!queue_.empty() && !starts(*queue_.front(), video_)) drop_oldest();
  if (queue_.empty()) need_start_ = true;
}

void Intake::stop_taking() {
  taking_ = false;
  if (thread_.joinable()) return;
  thread_ = std::thread([this] { read_by_itself(); });
  ::pthread_setname_np(thread_.native_handle(), "intake");
}

const CopyPacket* Intake::oldest() const {
  std::lock_guard lock(mutex_);
  return queue_.empty() ? nullptr : queue_.front().get();
}

CopyPacketPtr Intake::take() {
  std::lock_guard lock(mutex_);
  CopyPacketPtr packet = std::move(queue_.front());
  queue_.pop_front();
  bytes_ -= packet->bytes;
  return packet;
}

std::optional<Error> Intake::ended() const {
  std::lock_guard lock(mutex_);
  return end_;
}

std::uint64_t Intake::dropped() const {
  std::lock_guard lock(mutex_);
  return dropped_;
}

}  // namespace weir::egress
