// spawn: runs a coroutine beside others, and lets no failure of it pass unseen.
//
// Errors are values, so an exception that leaves a coroutine is a mistake in the program: whatever that coroutine was
// there for would be missing from then on, while the rest of the program looks well. It is logged as
// "program.broken", and the program ends with code 50, so that its supervisor starts it again. Code that can handle
// an exception better (a server, which loses only one connection by it) spawns with a handler of its own. The thread
// of the executor only.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <functional>
#include <string_view>

namespace weir {

inline constexpr int kExitBroken = 50;

// `what` names the work in the log; `ended` is called when it has ended well.
void spawn(const boost::asio::any_io_executor& on, boost::asio::awaitable<void> work, std::string_view what,
           std::function<void()> ended = {});

}  // namespace weir
