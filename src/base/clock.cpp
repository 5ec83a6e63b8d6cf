#include "weir/base/clock.hpp"

#include "weir/base/result.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <ctime>

namespace weir {

namespace asio = boost::asio;

namespace {
Duration read_clock(clockid_t which) {
  timespec t{};
  WEIR_ASSERT(clock_gettime(which, &t) == 0);
  return std::chrono::seconds(t.tv_sec) + std::chrono::duration_cast<Duration>(std::chrono::nanoseconds(t.tv_nsec));
}
}  // namespace

Instant boot_now() { return Instant(read_clock(CLOCK_BOOTTIME)); }
WallTime wall_now() { return WallTime(read_clock(CLOCK_REALTIME)); }

Instant RealClock::now() const { return boot_now(); }
WallTime RealClock::wall() const { return wall_now(); }

asio::awaitable<void> RealClock::wait_until(Instant deadline) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  // The timer counts in nanoseconds: "for ever" must not overflow it. A year is for ever here.
  timer.expires_after(std::clamp<Duration>(deadline - now(), Duration(0), std::chrono::hours(24 * 365)));
  boost::system::error_code cancelled;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
}

struct VirtualClock::Timer {
  explicit Timer(asio::any_io_executor ex) : wake(std::move(ex), asio::steady_timer::time_point::max()) {}
  asio::steady_timer wake;  // never expires by itself: `run` cancels it when its time has come
};

asio::awaitable<void> VirtualClock::wait_until(Instant deadline) {
  if (deadline <= now_) co_return;
  auto timer = std::make_shared<Timer>(co_await asio::this_coro::executor);
  timers_.emplace(deadline, timer);
  boost::system::error_code fired;
  co_await timer->wake.async_wait(asio::redirect_error(asio::use_awaitable, fired));
}

void VirtualClock::run(Instant until) {
  for (;;) {
    io_.restart();
    while (io_.poll() > 0) {
    }
    auto next = timers_.begin();
    if (next == timers_.end() || next->first > until) break;
    now_ = std::max(now_, next->first);
    if (auto timer = next->second.lock()) timer->wake.cancel();
    timers_.erase(next);
  }
  now_ = std::max(now_, until);
}

}  // namespace weir
