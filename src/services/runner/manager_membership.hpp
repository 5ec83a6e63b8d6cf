// Membership: this runner as the control plane knows it: registered, with tokens that are renewed long before they end,
// and with a heartbeat that brings back what is ordered of it. Loop thread only.
#pragma once

#include "manager_workers.hpp"

namespace weir::runner {

class Membership {
 public:
  Membership(Shell& shell, WorkerProcesses& workers) : shell_(shell), workers_(workers) {}

  // Registers, again and again until the control plane has answered; the rest of the manager waits for it, because
  // the last will must be in place before the first lease.
  boost::asio::awaitable<void> join();
  boost::asio::awaitable<void> keep_token();
  boost::asio::awaitable<void> beat();
  bool registered() const { return registered_; }
  // Called by a feed whose token was refused: the workers' token is of the same kind, so it is renewed too.
  void token_refused() { token_refused_ = true; }

 private:
  void explain_outage(const Error& why);
  void say_alive(const Summary& summary, const Usage& usage);
  boost::asio::awaitable<void> tell_plane(json::object body);
  boost::asio::awaitable<void> tell_bus(std::vector<event::Event> events);
  void hear(const RunnerFlags& flags);
  void check_load(const Usage& usage);
  void check_known(const Result<RunnerFlags>& heard);

  Shell& shell_;
  WorkerProcesses& workers_;
  bool registered_ = false;
  bool token_refused_ = false;
  bool drain_ordered_ = false, drained_ = false;
  int beats_unknown_ = 0;  // heartbeats in a row to a control plane that does not know this runner
  int load_high_ = 0;      // heartbeats that found too high a load, less those that did not
};

}  // namespace weir::runner
