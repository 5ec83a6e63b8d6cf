// Control: the HTTP endpoint through which tests command a running simulator.
//
//   GET  /v1/cameras                    what each camera shows, its sessions, its frames sent, its fault
//   POST /v1/cameras                    adds one: {"recorder":…, "name":…, "profile":"…"}
//   POST /v1/cameras/{name}/fault       {"kind":…}: see fault.hpp
//   GET  /v1/recorders, POST /v1/recorders, POST /v1/recorders/{name}/fault
//   GET  /v1/dials, DELETE /v1/dials    every connect since the start or the last DELETE, and the peaks
//
// A tool for tests on one machine: no token, but a request must name a loopback host, so that no web page can reach it.
// Commands run on a thread of their own, because they block. Loop thread only.
#pragma once

#include "weir/camsim/simulator.hpp"
#include "weir/net/router.hpp"

#include <boost/asio/thread_pool.hpp>

namespace weir::camsim {

class Control {
 public:
  explicit Control(Simulator& simulator) : simulator_(simulator) {}
  void add_routes(net::Router& router);
  // Waits for running commands.
  void stop() { commands_.join(); }

 private:
  using Command = std::function<Result<json::value>(net::Request&)>;
  void add(net::Router& router, net::Method method, std::string_view pattern, Command command);

  Simulator& simulator_;
  boost::asio::thread_pool commands_{2};
};

}  // namespace weir::camsim
