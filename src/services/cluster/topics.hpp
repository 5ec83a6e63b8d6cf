// Topics: what the lines of a cluster's log are about, in the field `topic`: the cluster and its processes, which worker
// has what, and the connections to workers. Constants; any thread.
#pragma once

#include <string_view>

namespace weir::cluster {

inline constexpr std::string_view kTopic = "topic";
inline constexpr std::string_view kClusterTopic = "detector-cluster";
inline constexpr std::string_view kPlacementTopic = "master-slave-worker-cluster";
inline constexpr std::string_view kConnectionTopic = "DetectorConnection";

}  // namespace weir::cluster
