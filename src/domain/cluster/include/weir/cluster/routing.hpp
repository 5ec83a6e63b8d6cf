// Routing: which slave's channel carries each worker's detections.
//
// Every online slave gets as many workers as every other, or one more. A worker stays with the slave that it has unless
// that slave is gone or has too many; what moves, moves to those that have the fewest. The same input gives the same
// routes. Pure; any thread.
#pragma once

#include <map>
#include <set>
#include <string>

namespace weir::cluster {

using Routes = std::map<std::string, std::string>;  // worker → slave

// Empty where there is no slave.
Routes route(const std::set<std::string>& workers, const std::set<std::string>& slaves, const Routes& present);

}  // namespace weir::cluster
