// Shell: what the parts of a manager share: the brain, the way to it, the runner's name, and its end. Loop thread only.
#pragma once

#include "plane_watch.hpp"

#include "weir/base/alarm.hpp"
#include "weir/runner/manager.hpp"

namespace weir::runner {

struct Shell {
  Shell(boost::asio::io_context& loop, ManagerPorts reached, net::Metrics& counters, ManagerSettings given);

  // Tells the brain, and performs what it decides.
  void feed(const Event& event);
  // Starts a coroutine of the manager; one that throws is a mistake in Weir and ends the runner. `what` names it then.
  void spawn(boost::asio::awaitable<void> work, std::string_view what);
  void end(int code);
  bool over() const { return code.has_value(); }
  // Begins under another boot: this runner holds no lease under the old one.
  void begin_anew(BootId boot);

  boost::asio::io_context& io;
  const ManagerPorts ports;
  net::Metrics& metrics;
  const ManagerSettings settings;
  lease::Owner owner;  // constant from registration on
  Brain brain;
  std::function<void(Action action)> perform;
  PlaneWatch watch;
  std::optional<Instant> stop_by = {};
  std::optional<int> code = {};
  Alarm brain_changed, ended;
};

}  // namespace weir::runner
