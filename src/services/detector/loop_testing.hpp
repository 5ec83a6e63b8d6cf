// For tests with a server and a client on one loop: the loop runs until what the test waits for has come. One thread.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/base/result.hpp"

#include <boost/asio/co_spawn.hpp>

#include <functional>
#include <optional>

namespace weir::detector::testing {

// Runs the loop until the condition holds; false where it does not within twenty seconds.
inline bool runs_until(boost::asio::io_context& io, const std::function<bool()>& condition) {
  Instant end = boot_now() + 20s;
  while (!condition() && boot_now() < end) {
    io.restart();
    io.run_one_for(std::chrono::milliseconds(20));
  }
  return condition();
}

template <class T>
T on(boost::asio::io_context& io, boost::asio::awaitable<T> what) {
  std::optional<T> result;
  auto keep = [](boost::asio::awaitable<T> work, std::optional<T>& into) -> boost::asio::awaitable<void> {
    into.emplace(co_await std::move(work));
  };
  boost::asio::co_spawn(io, keep(std::move(what), result), [](const std::exception_ptr& thrown) {
    if (thrown) std::rethrow_exception(thrown);
  });
  WEIR_ASSERT(runs_until(io, [&] { return result.has_value(); }));
  return std::move(*result);
}

}  // namespace weir::detector::testing
