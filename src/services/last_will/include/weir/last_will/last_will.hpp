// LastWill: the parent of a runner's manager, which outlives it and gives its leases back.
//
// It starts the manager and listens to it: the manager tells it its boot and its will before it holds a lease. When
// the manager has ended, however it ended, everything below it is ended as well; then its leases are released at once
// instead of being waited for until they expire. Where a process cannot be ended its leases are left to expire,
// because it may still emit. A will that no control plane took stays in the file, and the next start of this runner
// sends it first. LastWill has no other logic, so that nothing else can end it. Loop thread only.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/ports/last_will.hpp"
#include "weir/ports/process_host.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace weir::last_will {

struct Settings {
  RunnerId runner;
  Program manager;
  std::string control_plane;  // until the manager names another one
  Duration ttl;               // after this time the leases have expired, and the will is not needed
  std::function<void()> started = {};                            // the manager runs
  std::function<void(const std::string& address)> listening = {};  // the manager answers there
};

// The control plane at these addresses; null where they cannot be read.
using FindOffice = std::function<std::unique_ptr<WillOffice>(const std::string& control_plane)>;

class LastWill {
 public:
  LastWill(Clock& clock, ProcessHost& host, Household& household, TestamentFile& file, FindOffice find_office,
           Settings settings);

  // Returns when the will is carried out or left in its file: the manager's exit code, or 1 where a signal ended it.
  boost::asio::awaitable<Result<int>> run();
  // Passes a signal on to the manager.
  void signal(int number) const;
  // The process that started this one is gone, and the control plane with it: nobody can carry the will out, so it
  // stays in the file. Ends everything below this process; false where the manager had ended already and the will is
  // on its way.
  bool abandon() const;

 private:
  boost::asio::awaitable<void> send_left_behind();
  boost::asio::awaitable<void> listen();
  void hear(const std::string& line);
  boost::asio::awaitable<void> settle();
  boost::asio::awaitable<bool> send(Testament testament, Duration limit) const;
  boost::asio::awaitable<void> send_late(Testament testament) const;
  void forget() const;

  Clock& clock_;
  ProcessHost& host_;
  Household& household_;
  TestamentFile& file_;
  const FindOffice find_office_;
  const Settings settings_;
  std::string control_plane_ = settings_.control_plane;
  boost::asio::any_io_executor executor_;
  std::unique_ptr<Child> manager_;
  std::optional<Testament> testament_;
  std::optional<Testament> unsent_;  // an earlier boot's, which could not be sent at the start
};

}  // namespace weir::last_will
