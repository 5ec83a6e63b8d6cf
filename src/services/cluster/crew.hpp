// Crew: coroutines that belong to one thing; whoever ends that thing waits for them. Loop thread only.
#pragma once

#include "weir/base/alarm.hpp"
#include "weir/base/spawn.hpp"

namespace weir::cluster {

class Crew {
 public:
  Crew(boost::asio::io_context& io, Clock& clock) : io_(io), clock_(clock), ended_(io, clock) {}
  void spawn(boost::asio::awaitable<void> work, std::string_view what) {
    ++running_;
    weir::spawn(io_.get_executor(), std::move(work), what, [this] {
      --running_;
      ended_.ring();
    });
  }
  // Until none runs any more.
  boost::asio::awaitable<void> wait() {
    while (running_ > 0) co_await ended_.wait_until(clock_.now() + 100ms);
  }

 private:
  boost::asio::io_context& io_;
  Clock& clock_;
  Alarm ended_;
  int running_ = 0;
};

}  // namespace weir::cluster
