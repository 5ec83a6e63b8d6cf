#include "signals.hpp"

#include <csignal>

namespace weir::apps {

void Signals::add(const std::vector<int>& signals) {
  for (int signal : signals) set_.add(signal);
  added_ = signals;
}

void Signals::hear(std::function<void(int)> handler) {
  handler_ = std::move(handler);
  wait();
}

void Signals::wait() {
  set_.async_wait([this](const boost::system::error_code& cancelled, int signal) {
    if (cancelled || stopped_) return;
    handler_(signal);
    if (!stopped_) wait();
  });
}

// A signal that has arrived cannot be cancelled any more: no handler hears it, and none waits for the next.
void Signals::stop() {
  stopped_ = true;
  set_.cancel();
}

// The destroyed signal_set gives the signals their default back, which ends the process: so they are ignored from
// here on.
Signals::~Signals() {
  sigset_t mine, before;
  ::sigemptyset(&mine);
  for (int signal : added_) ::sigaddset(&mine, signal);
  ::pthread_sigmask(SIG_BLOCK, &mine, &before);
  set_.clear();
  for (int signal : added_) std::signal(signal, SIG_IGN);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace weir::apps
