// Product routes: what products ask of a cluster and hear of it, over HTTP and WebSocket, the same at every process.
//
// Subscriptions are rows of the control plane: these routes write them there and have the master look, and wait for no
// worker. What belongs to the cluster itself is asked of its Front. A listener that does not take what it is told is cut
// off, and the others do not notice. Loop thread only.
#pragma once

#include "weir/cluster/front.hpp"
#include "weir/net/metrics.hpp"
#include "weir/net/router.hpp"
#include "weir/net/token.hpp"
#include "weir/base/clock.hpp"
#include "weir/ports/cluster_plane.hpp"
#include "weir/ports/detector_link.hpp"

namespace weir::cluster {

struct ProductPorts {
  Front& front;
  ClusterPlane& plane;
  DetectorLink& workers;
};

// All outlive the router, and every connection that it has opened.
void add_product_routes(net::Router& router, ProductPorts ports, net::Metrics& metrics, Clock& clock,
                        const net::TokenKey& key);

}  // namespace weir::cluster
