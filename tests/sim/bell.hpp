// How coroutines of the product wait in the simulated world: for a bell that somebody in the world rings. Whoever rings
// holds the bell only weakly: it goes with the process that waits for it. One thread.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/base/result.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <functional>

namespace weir::sim {

namespace asio = boost::asio;

using Bell = asio::steady_timer;  // one that never fires by itself

inline std::shared_ptr<Bell> make_bell(const asio::any_io_executor& on) {
  return std::make_shared<Bell>(on, Bell::time_point::max());
}
inline asio::awaitable<void> wait_for(std::shared_ptr<Bell> bell) {
  boost::system::error_code rung;
  co_await bell->async_wait(asio::redirect_error(asio::use_awaitable, rung));
}

// Time as a process of the world sees it.
class WorldClock final : public Clock {
 public:
  struct World {
    std::function<Instant()> now;  // by this host's clock
    std::function<WallTime()> wall;
    // Rings the bell then, in this process, and lets the process go on.
    std::function<void(Instant when, std::weak_ptr<Bell> bell)> ring_at;
  };
  explicit WorldClock(World world) : world_(std::move(world)) {}
  Instant now() const override { return world_.now(); }
  WallTime wall() const override { return world_.wall(); }
  asio::awaitable<void> wait_until(Instant deadline) override {
    if (deadline <= now()) co_return;
    auto bell = make_bell(co_await asio::this_coro::executor);
    if (deadline < now() + std::chrono::hours(24)) world_.ring_at(deadline, bell);
    co_await wait_for(bell);
  }

 private:
  const World world_;
};

// A question that the world answers later, or never.
template <class T>
struct Open {
  explicit Open(const asio::any_io_executor& on) : bell(make_bell(on)) {}
  std::shared_ptr<Bell> bell;
  std::optional<Result<T>> answer = {};
};

// How the world answers it; the first answer counts, and none where nobody waits any more.
template <class T>
class Done {
 public:
  explicit Done(std::weak_ptr<Open<T>> open) : open_(std::move(open)) {}
  bool wanted() const {
    auto there = open_.lock();
    return there && !there->answer;
  }
  void operator()(Result<T> answer) const {
    if (!wanted()) return;
    auto there = open_.lock();
    there->answer.emplace(std::move(answer));
    there->bell->cancel();
  }

 private:
  std::weak_ptr<Open<T>> open_;
};

// Asks by `begin`, which is given what to answer to.
template <class T>
asio::awaitable<Result<T>> ask(std::function<void(Done<T> done)> begin) {
  auto open = std::make_shared<Open<T>>(co_await asio::this_coro::executor);
  begin(Done<T>(open));
  if (!open->answer) co_await wait_for(open->bell);
  if (!open->answer) co_return Error{Errc::unavailable, "nobody", "nobody answers"};
  co_return std::move(*open->answer);
}

}  // namespace weir::sim
