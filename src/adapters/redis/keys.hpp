// Keys: under which names the cluster's tables stand in Redis. Private to this folder. Constants; any thread.
//
// The tables' names are those that other programs know the cluster by; the last three keys are Weir's own. None
// expires.
#pragma once

#include "weir/ports/coordination.hpp"

namespace weir::redis {

constexpr std::string_view key_of(ClusterTable table) {
  switch (table) {
    case ClusterTable::connections: return "worker:connections";
    case ClusterTable::assignments: return "worker:assignments";
    case ClusterTable::desired: return "worker:desired_subscriptions";
    case ClusterTable::actual: return "worker:actual_subscriptions";
    case ClusterTable::slaves: break;
  }
  return "master-election:slaves";
}

inline constexpr std::string_view kEpochKey = "master-election:epoch";    // under which writes are taken
inline constexpr std::string_view kDetectionsKey = "worker:detections";   // the newest detections, a stream
inline constexpr std::string_view kDetectionsCountKey = "worker:detections:count";  // of all that were ever kept

}  // namespace weir::redis
