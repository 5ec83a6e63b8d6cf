#include "weir/worker/dial_limiter.hpp"

namespace weir::worker {

void DialLimiter::Permit::release() {
  if (limiter_ == nullptr) return;
  {
    std::lock_guard guard(limiter_->mutex_);
    --limiter_->sites_[site_].dialling;
  }
  limiter_->changed_.notify_all();
  limiter_ = nullptr;
}

void DialLimiter::pass_over(Queue& queue) {
  while (queue.given_up.erase(queue.serving) > 0) ++queue.serving;
}

DialLimiter::Permit DialLimiter::wait(const SiteId& site, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  Queue& queue = sites_[site];  // stays where it is: the map never moves its elements and none is erased
  std::uint64_t ticket = queue.next_ticket++;
  bool mine = changed_.wait(lock, stop, [&] { return queue.serving == ticket && queue.dialling < at_once_; });
  if (!mine) {
    queue.given_up.insert(ticket);
    pass_over(queue);
    changed_.notify_all();
    return {};
  }
  ++queue.serving;
  pass_over(queue);
  ++queue.dialling;
  changed_.notify_all();
  return Permit(this, site);
}

}  // namespace weir::worker
