#include "weir/base/elapsed.hpp"

#include <algorithm>

namespace weir {

boost::asio::awaitable<void> wait_elapsed(Clock& clock, Duration d, std::function<bool()> over) {
  const Instant due = clock.now() + d;
  const WallTime wall_due = clock.wall() + d;
  while (!over() && clock.now() < due && clock.wall() < wall_due)
    co_await clock.wait(std::min<Duration>(1s, due - clock.now()));
}

}  // namespace weir
