// Clock: where shells get the time and how they wait, so that a test can be in charge of both.
//
// `now` is CLOCK_BOOTTIME: it goes on while the machine sleeps, so a deadline never revives. RealClock may be used
// from any thread for `now` and `wall`; waiting belongs to the io_context's thread.
#pragma once

#include "weir/base/time.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <map>
#include <memory>

namespace weir {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant now() const = 0;
  virtual WallTime wall() const = 0;
  // Returns at `deadline` or when the coroutine is cancelled; the caller looks at `now` to tell which.
  virtual boost::asio::awaitable<void> wait_until(Instant deadline) = 0;
  boost::asio::awaitable<void> wait(Duration d) { return wait_until(now() + d); }
};

class RealClock final : public Clock {
 public:
  Instant now() const override;
  WallTime wall() const override;
  boost::asio::awaitable<void> wait_until(Instant deadline) override;
};

// Time that moves only when everything else has nothing left to do: `run` drains the io_context, jumps to the next
// timer and repeats until no timer is left or `until` is reached. Timers fire in order of deadline, then of arming.
class VirtualClock final : public Clock {
 public:
  explicit VirtualClock(boost::asio::io_context& io) : io_(io) {}
  Instant now() const override { return now_; }
  WallTime wall() const override { return WallTime{wall_offset_ + now_.time_since_epoch()}; }
  boost::asio::awaitable<void> wait_until(Instant deadline) override;

  void run(Instant until);
  void step_wall(Duration by) { wall_offset_ += by; }

 private:
  struct Timer;
  boost::asio::io_context& io_;
  Instant now_{};
  Duration wall_offset_ = std::chrono::hours(24 * 365 * 50);
  std::multimap<Instant, std::weak_ptr<Timer>> timers_;
};

Instant boot_now();
WallTime wall_now();

}  // namespace weir
