// What a process of a detector cluster serves to those who run it: its health and metrics, without a token. Loop thread
// only.
#pragma once

#include "weir/cluster/backend.hpp"
#include "weir/net/router.hpp"

namespace weir::cluster {

// All outlive the router.
void add_endpoints(net::Router& router, Backend& backend, net::Metrics& metrics);

}  // namespace weir::cluster
