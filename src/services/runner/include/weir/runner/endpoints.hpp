// The runner's endpoints: health, metrics (its own and its workers'), service discovery, and its state for a person.
//
// Nobody dials a worker from outside: `/workers/{shard}/metrics` is the worker's page by way of the runner, and
// `/sd/prometheus` lists these pages for Prometheus' HTTP service discovery. These pages refuse a request that names
// another runner (`?runner_id=`). Nothing here is secret. Loop thread only.
#pragma once

#include "weir/net/metrics.hpp"
#include "weir/net/router.hpp"
#include "weir/runner/manager.hpp"

namespace weir::runner {

void add_endpoints(net::Router& router, Manager& manager, net::Metrics& metrics);

}  // namespace weir::runner
