// Membership: by which a process of a cluster is known to the others: its record among the slaves, and what it tells
// the master every five seconds. The record goes when the process is stopped in good order. Loop thread only.
#pragma once

#include "crew.hpp"

#include "weir/cluster/announcement.hpp"
#include "weir/ports/coordination.hpp"

namespace weir::cluster {

class Membership {
 public:
  Membership(boost::asio::io_context& io, Coordination& on, Clock& clock, EpochJudge& judge, std::string process,
             std::function<std::int64_t()> listeners);

  boost::asio::awaitable<void> run();  // until `stop`; then the record is removed
  // The number of listeners has changed.
  void soon() {
    due_ = {};
    alarm_.ring();
  }
  void stop() {
    stopping_ = true;
    alarm_.ring();
  }

 private:
  boost::asio::awaitable<bool> be_there();
  boost::asio::awaitable<void> read_routes();
  void heard(const Heard& heard);
  void count(const std::map<std::string, std::string>& slave_of);

  Coordination& on_;
  Clock& clock_;
  EpochJudge& judge_;
  const std::string process_;
  const std::function<std::int64_t()> listeners_;
  Alarm alarm_;
  std::unique_ptr<Listening> listening_;
  std::int64_t workload_ = 0;
  Instant due_{};
  bool routes_unread_ = false, stopping_ = false;
};

}  // namespace weir::cluster
