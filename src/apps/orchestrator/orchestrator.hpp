// `weir orchestrator`: one worker and at most one forwarder for every stream that somebody publishes to MediaMTX.
#pragma once

#include "common/command.hpp"

namespace weir::apps {

std::vector<Command> orchestrator_commands();

}  // namespace weir::apps
