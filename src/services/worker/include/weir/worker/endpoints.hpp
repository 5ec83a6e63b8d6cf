// The worker's local endpoints: health, readiness, leases, sources, pictures, drain.
//
// They answer on loopback only, to the bearer of this boot's token, and only under a loopback host name, so that a
// web page in a browser cannot reach them by another name; only `/metrics` needs no token. Loop thread only.
#pragma once

#include "weir/net/router.hpp"
#include "weir/worker/worker.hpp"

namespace weir::worker {

struct Endpoints {
  Worker& worker;
  net::Metrics& metrics;
  RunnerId runner;                            // whose worker this is: metrics asked of another one are refused
  Secret token;
  std::function<void()> drain;                // begins a graceful stop; returns at once
  std::function<void()> terminate;            // ends the process
  // Where and by which token to publish from now on; an empty argument changes nothing.
  std::function<void(std::string base_url, Secret token)> set_bus;
  // True where the worker can publish nothing any more: its health routes then answer with an error.
  std::function<bool()> mute = [] { return false; };
};

// `endpoints` must outlive the router's last request.
void add_endpoints(net::Router& router, Endpoints& endpoints);

}  // namespace weir::worker
