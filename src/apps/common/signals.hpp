// Signals: the signals that this process gets, one after the other, until `stop`.
//
// `add` keeps the signals that come from then on, `hear` hands each to the handler on the loop. After `stop` the loop
// may end: a signal that was already on its way no longer keeps it alive. The object lives to the end of the process:
// when it is destroyed, a signal that comes too late is ignored and does not turn a clean end into one by a signal.
// Loop's thread only.
#pragma once

#include <boost/asio/signal_set.hpp>

#include <functional>
#include <vector>

namespace weir::apps {

class Signals {
 public:
  explicit Signals(boost::asio::io_context& io) : set_(io) {}
  ~Signals();
  Signals(const Signals&) = delete;

  void add(const std::vector<int>& signals);
  void hear(std::function<void(int signal)> handler);
  void stop();

 private:
  void wait();

  boost::asio::signal_set set_;
  std::vector<int> added_;
  std::function<void(int)> handler_;
  bool stopped_ = false;
};

}  // namespace weir::apps
