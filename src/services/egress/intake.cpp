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
    std::unique_lock lock(mutex_);
    bool worth_waking = packet ? accept(*std::move(packet)) : true;
    if (!packet) end_ = packet.error();
    lock.unlock();
    if (worth_waking) changed_.notify_one();
    if (!packet) return;
  }
}

bool Intake::accept(CopyPacketPtr packet) {
  bool start = starts(*packet, video_), sound = packet->track == forward::Track::audio;
  if (need_start_ && !start) {
    ++dropped_;
    return false;
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
  return taking_ && !(sound && video_);
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

Result<Intake::Taken> Intake::take(Duration within) {
  Taken taken;
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, within, [this] { return !queue_.empty() || end_ || woken_; });
  woken_ = false;
  if (queue_.empty() && end_) return *end_;
  for (; !queue_.empty() && taken.size() < kTakenMax; queue_.pop_front()) {
    bytes_ -= queue_.front()->bytes;
    taken.push_back(std::move(queue_.front()));
  }
  return taken;
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
