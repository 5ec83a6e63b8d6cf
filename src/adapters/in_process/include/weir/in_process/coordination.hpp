// InProcessCoordination: Coordination for a cluster of one process, which needs no Redis.
//
// It keeps the same promises, the fence by epochs included, so that the same service runs on either; what it holds ends
// with the process. A listener hears from the loop, never inside the call that published. Loop thread only.
#pragma once

#include "weir/ports/coordination.hpp"

#include <boost/asio/any_io_executor.hpp>

namespace weir::in_process {

struct Limits {
  size_t detections_max = 10'000;  // kept; the oldest go first
  size_t heard_max = 10'000;       // that wait for one listener
  std::int64_t ids_above = 0;      // no detection gets a number up to it: one that takes another's place repeats no id
};

std::unique_ptr<Coordination> make_coordination(boost::asio::any_io_executor loop, Limits limits = {});

}  // namespace weir::in_process
