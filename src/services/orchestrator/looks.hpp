// Looks: compares what MediaMTX's list of paths says with what hooks have told.
//
// Hooks get lost, and no MediaMTX sends one twice, so the list is read every few seconds, and at once after a child was
// started or ended. A MediaMTX that does not answer says nothing about any publisher. Each forwarder is asked as often
// whether its destination takes what it is sent: only it knows. Loop thread only.
#pragma once

#include "shell.hpp"

namespace weir::orchestrator {

class Looks {
 public:
  explicit Looks(Shell& shell) : shell_(shell) {}
  boost::asio::awaitable<void> run();

 private:
  boost::asio::awaitable<void> look();
  boost::asio::awaitable<Result<bool>> confirm_absence(std::map<std::string, MediaPath>& paths);
  void ask_forwarders();
  boost::asio::awaitable<void> ask_forwarder(stream::StreamId id, std::string instance, std::string control);
  bool waits_for_output() const;
  void note(const Error* failed);

  Shell& shell_;
  bool away_ = false;
  Instant asked_{};  // the forwarders
};

}  // namespace weir::orchestrator
