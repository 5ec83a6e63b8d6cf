// Roster: the master's list of the cluster's processes ("slaves"), and which of them gets which worker's detections.
//
// A slave is there while its record changes: one that did not for 15 seconds is removed, whatever its clock says. A
// record that disappears is that of a slave that was stopped, unless the master's own has disappeared too: then Redis
// was emptied, and each slave is given the time to write its record again. Detections go by a route only after it was
// announced, so that whoever listens knows every channel before anything is said there. Loop thread only.
#pragma once

#include "pen.hpp"

#include "weir/cluster/records.hpp"
#include "weir/cluster/routing.hpp"

namespace weir::cluster {

class Roster {
 public:
  struct Listens {
    std::function<void(std::string event, const std::string& slave)> tell;  // "slave-registered", "slave-removed"
    std::function<void()> announced;                                        // routes
  };
  Roster(boost::asio::io_context& io, Coordination& on, Pen& pen, Clock& clock, net::Metrics& metrics, std::string own,
         std::set<std::string> workers, Listens listens)
      : on_(on), pen_(pen), clock_(clock), metrics_(metrics), own_(std::move(own)), workers_(std::move(workers)),
        listens_(std::move(listens)), alarm_(io, clock) {}

  boost::asio::awaitable<void> run();  // until `stop`
  void go_on() { alarm_.ring(); }
  void stop() {
    stopping_ = true;
    alarm_.ring();
  }
  void heard(const Heartbeat& heartbeat) { listeners_[heartbeat.slave] = heartbeat.listeners; }

  // As announced under the present epoch; "" before that.
  std::string slave_of(const std::string& worker) const;
  const Routes& routes() const { return routes_; }
  std::vector<SlaveState> slaves() const;
  // Whether anybody listens at any process but this one.
  bool somebody_listens() const;

 private:
  struct Known {
    std::string text;
    Instant changed{};
  };
  void compare(const SharedTable& table);
  boost::asio::awaitable<void> remove_late_ones();
  boost::asio::awaitable<void> announce();
  void forget(const std::string& slave);

  Coordination& on_;
  Pen& pen_;
  Clock& clock_;
  net::Metrics& metrics_;
  const std::string own_;
  const std::set<std::string> workers_;  // without credentials
  const Listens listens_;
  Alarm alarm_;
  std::map<std::string, Known> known_;
  std::map<std::string, std::int64_t> listeners_;
  Routes routes_;
  std::uint64_t announced_under_ = 0;  // the pen's `opened`
  bool read_ = false;                  // what the master before this one left
  bool stopping_ = false;
};

}  // namespace weir::cluster
