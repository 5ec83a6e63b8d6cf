// Crier: tells listeners at every process what happens to workers and processes, in order.
//
// While Redis is away it tells this process's own listeners. What waits is bounded; the oldest is left out. Loop thread
// only.
#pragma once

#include "pen.hpp"

#include <deque>

namespace weir::cluster {

class Crier {
 public:
  Crier(boost::asio::io_context& io, Pen& pen, Clock& clock, std::function<void(const Saying&)> tell_here)
      : pen_(pen), clock_(clock), tell_here_(std::move(tell_here)), alarm_(io, clock) {}
  // A ClusterHappened or a PatchRequested.
  void tell(Saying what);
  boost::asio::awaitable<void> run();  // until `stop`
  void go_on() { alarm_.ring(); }
  void stop() {
    stopping_ = true;
    alarm_.ring();
  }

 private:
  Pen& pen_;
  Clock& clock_;
  const std::function<void(const Saying&)> tell_here_;
  Alarm alarm_;
  std::deque<Saying> waiting_;
  bool stopping_ = false;
};

}  // namespace weir::cluster
