// What a manager says about itself: metrics, its state for a person, and what a heartbeat names. Loop thread only.
#pragma once

#include "manager_workers.hpp"

namespace weir::runner {

void measure(net::Metrics& metrics, const RunnerId& runner, const Summary& summary);
// This runner's cameras that do not stream, and why: shown to a person who asks for the state of the fleet.
json::array waiting(const Summary& summary);
// The runner's cameras and workers; what they say of themselves is shown as they said it.
json::object describe(const Shell& shell, const WorkerProcesses& workers);

}  // namespace weir::runner
