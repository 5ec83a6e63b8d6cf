// What a detection worker answers: the master's WebSocket at `/`, a camera's newest picture, health and metrics.
//
// With a token, socket and pictures need it. Without one the worker listens on loopback, and answers only programs on
// this machine: a web page in a browser, which can reach loopback too, is told by its Origin or by its Host and refused.
// Loop thread only.
#pragma once

#include "weir/detector/master_link.hpp"
#include "weir/net/router.hpp"

namespace weir::detector {

// All must outlive the router's last request.
struct Endpoints {
  MasterLink& master;
  const Roster& roster;
  const net::Metrics& metrics;
  Secret token;  // empty: none is needed
};
void add_endpoints(net::Router& router, const Endpoints& endpoints);

}  // namespace weir::detector
