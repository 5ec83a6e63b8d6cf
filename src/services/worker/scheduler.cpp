#include "weir/worker/scheduler.hpp"

#include <algorithm>

namespace weir::worker {

bool Scheduler::offer(Work work) {
  {
    std::lock_guard guard(mutex_);
    const CameraId& camera = work.source->config.camera;
    auto [mailbox, empty] = mailboxes_.try_emplace(camera);
    if (empty && !looked_at_.contains(camera)) queue_.push_back(camera);
    std::swap(mailbox->second, work);  // what was there is released outside the lock
  }
  if (work.picture) return true;
  arrived_.notify_one();
  return false;
}

std::vector<Work> Scheduler::take(const std::stop_token& stop,
                                  const std::function<size_t(const camera::Model&)>& most) {
  std::unique_lock lock(mutex_);
  if (!arrived_.wait(lock, stop, [&] { return !queue_.empty(); })) return {};
  std::vector<Work> taken;
  auto move_out = [&](std::deque<CameraId>::iterator at) {
    auto mailbox = mailboxes_.find(*at);
    taken.push_back(std::move(mailbox->second));
    looked_at_.insert(mailbox->first);
    mailboxes_.erase(mailbox);
    return queue_.erase(at);
  };
  move_out(queue_.begin());
  const camera::Model model = taken.front().source->config.model;
  size_t limit = most(model);
  for (auto at = queue_.begin(); at != queue_.end() && taken.size() < limit;) {
    const camera::Model& other = mailboxes_.at(*at).source->config.model;
    at = other.detector == model.detector && other.name == model.name ? move_out(at) : std::next(at);
  }
  return taken;
}

void Scheduler::done(const CameraId& camera) {
  {
    std::lock_guard guard(mutex_);
    looked_at_.erase(camera);
    if (!mailboxes_.contains(camera)) return;
    queue_.push_back(camera);
  }
  arrived_.notify_one();
}

void Scheduler::withdraw(const CameraId& camera) {
  std::lock_guard guard(mutex_);
  if (mailboxes_.erase(camera) > 0) std::erase(queue_, camera);
}

size_t Scheduler::waiting() const {
  std::lock_guard guard(mutex_);
  return queue_.size();
}

}  // namespace weir::worker
