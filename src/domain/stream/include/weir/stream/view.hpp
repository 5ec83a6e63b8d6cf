// View: what people read of a published stream, as JSON.
//
// Destinations are shown without their stream key, publishers without their query; preferences are not shown. Times are
// UTC. Pure; any thread.
#pragma once

#include "weir/stream/state.hpp"

namespace weir::stream {

// `now` and `wall` are the same moment.
json::object write_view(const State& state, Instant now, WallTime wall);

}  // namespace weir::stream
