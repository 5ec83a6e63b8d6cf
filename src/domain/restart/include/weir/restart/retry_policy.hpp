// RetryPolicy: after which error a camera is tried again when, whose fault it is, and what a person can do about it.
//
// One table, one row a code. Quick where the camera will come back by itself, slow where trying harms: a camera that is
// given a wrong password too often locks the account for everybody. Pure; any thread.
#pragma once

#include "weir/base/backoff.hpp"
#include "weir/restart/stream_error.hpp"

#include <string_view>

namespace weir::restart {

// Where the cause lies. What the runner cannot reach, another runner may; what the camera refuses, it refuses to all.
enum class Side { camera, runner };

struct RetryPolicy {
  StreamErrorCode code;
  Backoff backoff;
  Side side;
  std::string_view advice;  // one sentence for a person
};

const RetryPolicy& retry_policy(StreamErrorCode code);
// `attempt` counts failures in a row from 0; `draw` is uniform in [0, 1).
Duration retry_delay(StreamErrorCode code, int attempt, double draw);

}  // namespace weir::restart
