// DialLimiter: how many cameras of one site are being dialled at once.
//
// Every dial passes it, reconnects and standby included: a rebooting recorder with forty cameras is the commonest storm.
// A permit is held from before the dial until the camera has answered or failed. Those who wait get their turn in the
// order of asking.
//
// The workers of one runner share the limit through a file: a permit is a lock on one of the site's bytes in it, which
// the kernel gives back when its holder dies. Between processes there is no order. Any thread.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/time.hpp"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>

namespace weir::worker {

class DialLimiter {
 public:
  // Without a file, or with one that cannot be opened, the limit is this process's own.
  explicit DialLimiter(int at_once, const std::string& shared_file = {});
  ~DialLimiter();
  DialLimiter(const DialLimiter&) = delete;

  class Permit {
   public:
    Permit() = default;
    Permit(DialLimiter* limiter, SiteId site, int slot) : limiter_(limiter), site_(std::move(site)), slot_(slot) {}
    Permit(Permit&& other) noexcept
        : limiter_(std::exchange(other.limiter_, nullptr)), site_(std::move(other.site_)), slot_(other.slot_) {}
    Permit& operator=(Permit&& other) noexcept {
      std::swap(limiter_, other.limiter_);
      std::swap(site_, other.site_);
      std::swap(slot_, other.slot_);
      return *this;
    }
    ~Permit() { release(); }
    void release();
    explicit operator bool() const { return limiter_ != nullptr; }

   private:
    DialLimiter* limiter_ = nullptr;
    SiteId site_;
    int slot_ = 0;
  };

  // Waits for a permit; an empty one when `stop` was requested first.
  Permit wait(const SiteId& site, const std::stop_token& stop);

 private:
  struct Queue {
    std::set<int> slots = {};  // of those that dial, below `at_once`
    std::uint64_t next_ticket = 0;
    std::uint64_t serving = 0;                  // tickets below this were served or given up
    std::set<std::uint64_t> given_up = {};
  };
  void pass_over(Queue& queue);
  std::optional<int> take_slot(const SiteId& site, const Queue& queue) const;
  bool lock_byte(const SiteId& site, int slot, short how) const;

  const int at_once_;
  const int shared_ = -1;  // the file, or none
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<SiteId, Queue> sites_;
};

}  // namespace weir::worker
