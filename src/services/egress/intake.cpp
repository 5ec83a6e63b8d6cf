#include "weir/egress/intake.hpp"

#include <pthread.h>

namespace weir::egress {

namespace {
bool starts(const CopyPacket& packet, bool video) {
  return packet.key && (!video || packet.track == forward::Track::video);
}
}  // namespace

Intake::Intake(std::unique_ptr<CopyInput> input, bool video, IntakeLimits limits)
    : input_(std::move(input)), video_(video), limits_(limits), thread_([this] { run(); }) {
  ::pthread_setname_np(thread_.native_handle(), "intake");
}

Intake::~Intake() {
  input_->interrupt();
  thread_.join();
}

void Intake::run() {
  for (;;) {
    auto packet = input_->read();
    std::lock_guard lock(mutex_);
    if (packet) accept(*std::move(packet));
    else end_ = packet.error();
    changed_.notify_all();
    if (end_) return;
  }
}

void Intake::accept(CopyPacketPtr packet) {
  bool start = starts(*packet, video_);
  if (need_start_ && !start) return void(++dropped_);
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

// Where nothing after the first packet may begin a stream, everything goes, and the next that may is waited for.
void Intake::drop_to_newest_start() {
  size_t keep = queue_.size();
  while (--keep > 0 && !starts(*queue_[keep], video_)) {
  }
  if (keep == 0) {
    dropped_ += queue_.size();
    queue_.clear();
    bytes_ = 0;
    need_start_ = true;
    return;
  }
  for (; keep > 0; --keep) {
    bytes_ -= queue_.front()->bytes;
    queue_.pop_front();
    ++dropped_;
  }
}

void Intake::begin_taking() {
  std::lock_guard lock(mutex_);
  taking_ = true;
  while (!queue_.empty() && !starts(*queue_.front(), video_)) {
    bytes_ -= queue_.front()->bytes;
    queue_.pop_front();
    ++dropped_;
  }
  if (queue_.empty()) need_start_ = true;
}

void Intake::stop_taking() {
  std::lock_guard lock(mutex_);
  taking_ = false;
}

Result<CopyPacketPtr> Intake::take(Duration within) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, within, [this] { return !queue_.empty() || end_ || woken_; });
  woken_ = false;
  if (!queue_.empty()) {
    CopyPacketPtr packet = std::move(queue_.front());
    queue_.pop_front();
    bytes_ -= packet->bytes;
    return packet;
  }
  if (end_) return *end_;
  return CopyPacketPtr();
}

std::optional<Error> Intake::ended() const {
  std::lock_guard lock(mutex_);
  return queue_.empty() ? end_ : std::nullopt;
}

void Intake::wake() {
  std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

std::uint64_t Intake::dropped() const {
  std::lock_guard lock(mutex_);
  return dropped_;
}

}  // namespace weir::egress
