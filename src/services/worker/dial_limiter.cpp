#include "weir/worker/dial_limiter.hpp"

#include "weir/base/log.hpp"
#include "weir/base/random.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace weir::worker {

namespace {

constexpr int kSlotsASite = 1024;      // bytes between two sites
constexpr Duration kLookAgain = 10ms;  // while other processes hold all slots

// A site's number is the same in every process, of this version and the next.
std::uint64_t site_number(const SiteId& site) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : site.str()) hash = (hash ^ c) * 0x100000001b3;
  return hash >> 24;
}

int open_shared(const std::string& path) {
  if (path.empty()) return -1;
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0)
    log::warn("dials.not_shared", "the limit on dials is this worker's own")
        .with("file", path)
        .with("error", std::strerror(errno));
  return fd;
}

}  // namespace

DialLimiter::DialLimiter(int at_once, const std::string& shared_file)
    : at_once_(std::min(at_once, kSlotsASite)), shared_(open_shared(shared_file)) {}

DialLimiter::~DialLimiter() {
  if (shared_ >= 0) ::close(shared_);
}

bool DialLimiter::lock_byte(const SiteId& site, int slot, short how) const {
  struct flock range {};
  range.l_type = how;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(site_number(site) * kSlotsASite) + slot;
  range.l_len = 1;
  return ::fcntl(shared_, F_OFD_SETLK, &range) == 0 || (errno != EAGAIN && errno != EACCES);
}

// The kernel would grant this process a lock that it holds already, so the process remembers its own slots.
std::optional<int> DialLimiter::take_slot(const SiteId& site, const Queue& queue) const {
  for (int slot = 0; slot < at_once_; ++slot)
    if (!queue.slots.contains(slot) && (shared_ < 0 || lock_byte(site, slot, F_WRLCK))) return slot;
  return std::nullopt;
}

void DialLimiter::Permit::release() {
  if (limiter_ == nullptr) return;
  {
    std::lock_guard guard(limiter_->mutex_);
    limiter_->sites_[site_].slots.erase(slot_);
    if (limiter_->shared_ >= 0) limiter_->lock_byte(site_, slot_, F_UNLCK);
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
  auto room = [&] { return queue.serving == ticket && queue.slots.size() < static_cast<size_t>(at_once_); };
  std::optional<int> slot;
  while (!slot && changed_.wait(lock, stop, room)) {
    slot = take_slot(site, queue);
    if (!slot) changed_.wait_for(lock, stop, kLookAgain * (1 + random_unit()), [] { return false; });
    if (!slot && stop.stop_requested()) break;
  }
  if (!slot) {
    queue.given_up.insert(ticket);
    pass_over(queue);
    changed_.notify_all();
    return {};
  }
  ++queue.serving;
  pass_over(queue);
  queue.slots.insert(*slot);
  changed_.notify_all();
  return Permit(this, site, *slot);
}

}  // namespace weir::worker
