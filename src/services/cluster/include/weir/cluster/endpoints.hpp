// What a process of a detector cluster serves over HTTP: its state, health and metrics. The state needs a token signed
// with the key, as a control plane's routes do. Loop thread only.
#pragma once

#include "weir/cluster/backend.hpp"
#include "weir/net/router.hpp"
#include "weir/net/token.hpp"

namespace weir::cluster {

// All outlive the router.
void add_endpoints(net::Router& router, Backend& backend, net::Metrics& metrics, Clock& clock,
                   const net::TokenKey& key);

}  // namespace weir::cluster
