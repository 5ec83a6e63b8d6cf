// wait_elapsed: a wait for something that expires by another machine's clock, as a token does.
//
// A timer stands still while the machine sleeps and knows nothing of a wall clock that is set: a machine without a
// battery steps by years when it first hears the time.
#pragma once

#include "weir/base/clock.hpp"

#include <functional>

namespace weir {

// Returns when `d` has passed by either of the clock's times, or when `over` says so; looks once a second.
boost::asio::awaitable<void> wait_elapsed(Clock& clock, Duration d, std::function<bool()> over);

}  // namespace weir
