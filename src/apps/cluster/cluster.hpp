// `weir cluster`: one process of a detector cluster.
#pragma once

#include "common/command.hpp"

namespace weir::apps {

std::vector<Command> cluster_commands();

}  // namespace weir::apps
