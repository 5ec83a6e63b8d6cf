// DialLimiter: how many cameras of one site are being dialled at once.
//
// Every dial passes it, reconnects and standby included: a rebooting recorder with forty cameras is the commonest storm.
// A permit is held from before the dial until the camera has answered or failed. Those who wait get their turn in the
// order of asking. Any thread.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/time.hpp"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <stop_token>

namespace weir::worker {

class DialLimiter {
 public:
  explicit DialLimiter(int at_once) : at_once_(at_once) {}

  class Permit {
   public:
    Permit() = default;
    Permit(DialLimiter* limiter, SiteId site) : limiter_(limiter), site_(std::move(site)) {}
    Permit(Permit&& other) noexcept : limiter_(std::exchange(other.limiter_, nullptr)), site_(std::move(other.site_)) {}
    Permit& operator=(Permit&& other) noexcept {
      std::swap(limiter_, other.limiter_);
      std::swap(site_, other.site_);
      return *this;
    }
    ~Permit() { release(); }
    void release();
    explicit operator bool() const { return limiter_ != nullptr; }

   private:
    DialLimiter* limiter_ = nullptr;
    SiteId site_;
  };

  // Waits for a permit; an empty one when `stop` was requested first.
  Permit wait(const SiteId& site, const std::stop_token& stop);

 private:
  struct Queue {
    int dialling = 0;
    std::uint64_t next_ticket = 0;
    std::uint64_t serving = 0;                  // tickets below this were served or given up
    std::set<std::uint64_t> given_up = {};
  };
  void pass_over(Queue& queue);

  const int at_once_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<SiteId, Queue> sites_;
};

}  // namespace weir::worker
