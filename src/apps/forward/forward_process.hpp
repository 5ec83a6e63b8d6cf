// ForwardProcess: the process around a Forwarder, from its first line on stdout to its exit code.
//
// One thread forwards (forwarder.hpp); while there is nowhere to forward to, another reads the input (intake.hpp). The
// main one hears signals, the supervisor's socket and the metrics endpoint. SIGTERM or SIGINT end it with 0 within five
// seconds, whatever hangs. Main thread only.
#pragma once

#include "common/signals.hpp"
#include "forward_setup.hpp"

#include "weir/base/clock.hpp"
#include "weir/egress/forwarder.hpp"
#include "weir/egress/lease_socket.hpp"
#include "weir/net/server.hpp"

#include <boost/asio/steady_timer.hpp>

namespace weir::apps {

struct ForwardJob {
  egress::Identity identity;
  egress::Voice voice;
  std::string_view port_setting;  // of the metrics
  forward::Policy policy;
  int exit_at_deadline = forward::kExitTransient;  // where nobody extended the right to send
  // Makes the two ends; called once. `metrics` lives as long as the process.
  std::function<egress::Ends(egress::SendRight& right, net::Metrics& metrics)> ends;
};

class ForwardProcess {
 public:
  // `settings` outlives it.
  ForwardProcess(const Settings& settings, ForwardJob job);
  Status start();
  [[noreturn]] void run();

 private:
  void hear(int signal);
  void watch_deadline();
  [[noreturn]] void finish(forward::End end);

  const Settings& settings_;
  const ForwardJob job_;
  boost::asio::io_context io_{1};
  RealClock clock_;
  Signals signals_{io_};
  net::Metrics metrics_;
  egress::Report report_;
  egress::SendRight right_;
  egress::Forwarder forwarder_;
  egress::LeaseSocket socket_;
  boost::asio::steady_timer deadline_{io_}, stopping_{io_};
  bool stopped_ = false;
  net::Router router_;
  net::HttpServer server_{io_, clock_, router_, net::ServerLimits{.connections_max = 64}};
};

}  // namespace weir::apps
