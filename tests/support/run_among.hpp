// Runs a coroutine to its end on a loop that never runs out of work, because of a server. What `run` is elsewhere. Main
// thread only.
#pragma once

#include "stall.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <exception>
#include <optional>
#include <stdexcept>

namespace weir::test {

// Whatever else the loop has to do is done meanwhile.
inline bool soon(boost::asio::io_context& io, const std::function<bool()>& condition) {
  return eventually(20s, [&] {
    io.restart();
    io.poll();
    return condition();
  });
}

template <class T>
T run_among(boost::asio::io_context& io, boost::asio::awaitable<T> what) {
  std::optional<T> result;
  std::exception_ptr failed;
  auto keep = [&]() -> boost::asio::awaitable<void> { result.emplace(co_await std::move(what)); };
  boost::asio::co_spawn(io, keep(), [&](std::exception_ptr e) { failed = e; });
  bool over = soon(io, [&] { return result.has_value() || failed; });
  if (failed) std::rethrow_exception(failed);
  if (!over) throw std::runtime_error("the coroutine did not end");
  return std::move(*result);
}

}  // namespace weir::test
