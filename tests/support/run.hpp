// Runs a coroutine to its end from a plain test.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <exception>
#include <optional>

namespace weir::test {

template <class T>
T run(boost::asio::io_context& io, boost::asio::awaitable<T> what) {
  std::optional<T> result;
  std::exception_ptr failed;
  auto keep = [&]() -> boost::asio::awaitable<void> { result.emplace(co_await std::move(what)); };
  boost::asio::co_spawn(io, keep(), [&](std::exception_ptr e) { failed = e; });
  io.restart();
  io.run();
  if (failed) std::rethrow_exception(failed);
  return std::move(*result);
}

}  // namespace weir::test
