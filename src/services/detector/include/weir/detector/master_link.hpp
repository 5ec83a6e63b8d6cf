// MasterLink: a detection worker's end of the connection to the master of its cluster.
//
// One master at a time: whoever connects last is the master, because the one before may be gone without a word. What
// it commands is obeyed and answered by a state report; besides it gets one every two seconds, and every result as it
// comes. A command that cannot be read is counted and logged, and the connection goes on. Where nobody is connected, and
// while a master does not take what it is sent, results are dropped and counted: they are worth little later. Loop
// thread only.
#pragma once

#include "weir/base/alarm.hpp"
#include "weir/base/log_limit.hpp"
#include "weir/detector/roster.hpp"
#include "weir/net/web_socket.hpp"

namespace weir::detector {

// Of the whole machine; none: unknown.
struct Usage {
  std::optional<double> cpu_percent = {}, memory_percent = {};
};

class MasterLink {
 public:
  MasterLink(boost::asio::io_context& io, Clock& clock, Roster& roster, Sightings& sightings, net::Metrics& metrics,
             std::function<Usage()> usage);

  // One connection, from its first message to its end.
  boost::asio::awaitable<void> converse(net::WebSocket& socket);
  // Reports, until `stop`.
  boost::asio::awaitable<void> run();
  void stop();
  // Hands on what waits among the sightings.
  void deliver();

 private:
  void hear(const std::string& text);
  void report();
  bool post(const cluster::Message& message);

  Clock& clock_;
  Roster& roster_;
  Sightings& sightings_;
  net::Metrics& metrics_;
  const std::function<Usage()> measure_;
  net::WebSocket* master_ = nullptr;  // lives as long as its `converse`
  Usage usage_ = {};
  Alarm changed_;
  bool report_due_ = false, stopping_ = false;
  std::uint64_t dropped_before_ = 0;  // sightings that were counted already
  LogLimit complaints_{10s};
};

}  // namespace weir::detector
