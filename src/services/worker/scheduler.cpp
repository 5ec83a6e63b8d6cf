#include "weir/worker/scheduler.hpp"

#include "weir/base/clock.hpp"

#include <algorithm>

namespace weir::worker {

bool Scheduler::full(const std::deque<Work>& mailbox) const {
  size_t pixels = 0;
  for (const auto& [camera, works] : mailboxes_)
    for (const Work& work : works)
      pixels += static_cast<size_t>(work.picture->width()) * static_cast<size_t>(work.picture->height());
  return mailbox.size() >= kWaitingMax || pixels > kPixelsMax;
}

size_t Scheduler::offer(Work work) {
  std::vector<Work> replaced;  // released outside the lock
  bool first = false;
  {
    std::lock_guard guard(mutex_);
    const CameraId& camera = work.source->config.camera;
    std::deque<Work>& mailbox = mailboxes_[camera];
    first = mailbox.empty();
    if (first && !looked_at_.contains(camera)) queue_.push_back(camera);
    auto over = std::stable_partition(mailbox.begin(), mailbox.end(),
                                      [now = boot_now()](const Work& each) { return each.kept_until > now; });
    std::move(over, mailbox.end(), std::back_inserter(replaced));
    mailbox.erase(over, mailbox.end());
    if (!mailbox.empty() && full(mailbox)) {
      replaced.push_back(std::move(mailbox.front()));
      mailbox.pop_front();
    }
    mailbox.push_back(std::move(work));
  }
  if (first) arrived_.notify_one();
  return replaced.size();
}

std::vector<Work> Scheduler::take(const std::stop_token& stop,
                                  const std::function<size_t(const camera::Model&)>& most) {
  std::unique_lock lock(mutex_);
  if (!arrived_.wait(lock, stop, [&] { return !queue_.empty(); })) return {};
  std::vector<Work> taken;
  auto move_out = [&](std::deque<CameraId>::iterator at) {
    auto mailbox = mailboxes_.find(*at);
    taken.push_back(std::move(mailbox->second.front()));
    mailbox->second.pop_front();
    looked_at_.insert(mailbox->first);
    if (mailbox->second.empty()) mailboxes_.erase(mailbox);
    return queue_.erase(at);
  };
  move_out(queue_.begin());
  const camera::Model model = taken.front().source->config.model;
  size_t limit = most(model);
  for (auto at = queue_.begin(); at != queue_.end() && taken.size() < limit;) {
    const camera::Model& other = mailboxes_.at(*at).front().source->config.model;
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
