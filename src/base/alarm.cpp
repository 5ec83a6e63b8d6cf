#include "weir/base/alarm.hpp"

#include "weir/base/spawn.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace weir {

namespace asio = boost::asio;

struct Alarm::State {
  State(asio::io_context& io, Clock& with) : clock(with), bell(io, asio::steady_timer::time_point::max()) {}
  Clock& clock;
  asio::steady_timer bell;  // never fires by itself
  Instant wanted{};
  Instant watched = Instant::max();  // the earliest moment that a coroutine waits for
};

Alarm::Alarm(asio::io_context& io, Clock& clock) : state_(std::make_shared<State>(io, clock)) {}

void Alarm::ring() { state_->bell.cancel(); }

// A watcher that has reached its moment goes on to the one that is wanted by then. So there is one watcher, unless a
// caller wanted an earlier moment meanwhile; then the later watchers find that they were replaced, and end.
asio::awaitable<void> Alarm::watch(std::shared_ptr<State> state, Instant deadline) {
  for (;;) {
    co_await state->clock.wait_until(deadline);
    if (state->watched != deadline) co_return;
    if (state->wanted <= state->clock.now()) break;
    state->watched = deadline = state->wanted;
  }
  state->watched = Instant::max();
  state->bell.cancel();
}

asio::awaitable<void> Alarm::wait_until(Instant deadline) {
  auto state = state_;
  if (deadline <= state->clock.now()) co_return;
  state->wanted = deadline;
  if (deadline < state->watched) {
    state->watched = deadline;
    spawn(state->bell.get_executor(), watch(state, deadline), "alarm");
  }
  boost::system::error_code rung;
  co_await state->bell.async_wait(asio::redirect_error(asio::use_awaitable, rung));
}

}  // namespace weir
