// What `weir status` says of what no runner does: published streams, and cameras that a detector cluster looks at.
//
// Made from the control plane's lists. Pure functions; main thread only.
#pragma once

#include "weir/base/json.hpp"

#include <string>
#include <vector>

namespace weir::apps {

struct ClusterShown {
  std::string name, master;  // "" where no process holds the cluster's lease
  int cameras = 0;
};
struct StreamTrouble {
  std::string stream, problem;
};
struct ServiceView {
  std::vector<ClusterShown> clusters;
  int streams = 0, held = 0;  // published streams that are known, and that an orchestrator serves
  std::vector<StreamTrouble> troubles;
};

// Lists of the API: cameras, the leases of clusters, streams.
ServiceView service_view(const json::array& cameras, const json::array& cluster_leases, const json::array& streams);

// What is not all right, as parts of a sentence with "; " behind each; "" where all is.
std::string troubles_text(const ServiceView& view);

}  // namespace weir::apps
