// Alarm: a wait for a moment of the clock that another coroutine may cut short.
//
// One coroutine waits at a time; `ring` ends its wait and does nothing where nobody waits. Waiting again for a later
// moment arms no further timer. Loop thread only.
#pragma once

#include "weir/base/clock.hpp"

namespace weir {

class Alarm {
 public:
  Alarm(boost::asio::io_context& io, Clock& clock);
  // Waits until `deadline` or until `ring`; the caller looks at the clock to tell which.
  boost::asio::awaitable<void> wait_until(Instant deadline);
  void ring();

 private:
  struct State;
  static boost::asio::awaitable<void> watch(std::shared_ptr<State> state, Instant deadline);
  std::shared_ptr<State> state_;
};

}  // namespace weir
