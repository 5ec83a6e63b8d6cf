// Signals: what others tell this process by a signal, one after the other, until it has nothing more to hear.
//
// `add` keeps the signals that come from then on, `hear` hands each to the handler on the loop. After `stop` the loop may
// end: one that was already on its way keeps it no longer alive. Whoever has these has them to the end: when they are
// destroyed, a signal that comes too late is ignored and does not turn a clean end into one by a signal. Loop's thread
// only.
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
