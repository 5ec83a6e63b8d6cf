// ClusterPlane: the control plane as a process of a detector cluster asks it.
//
// An error of class `unavailable` or `unauthorized` means that nothing is known; only a typed answer says anything about
// the cluster's lease ("Lost is only a typed answer" in docs/lease-protocol.md). Loop thread only.
#pragma once

#include "weir/cluster/subscription.hpp"
#include "weir/lease/decide.hpp"
#include "weir/ports/displays.hpp"

namespace weir {

// One subscription that the rows ask for, and what its events need.
struct ClusterWish {
  cluster::DesiredSubscription subscription;
  SiteId site;
  lease::Version above{};  // the fence accepts the cluster's events about this camera only under a later version
};

class ClusterPlane {
 public:
  virtual ~ClusterPlane() = default;
  virtual Async<std::vector<lease::Answer>> apply(lease::Batch batch) = 0;
  // Everything that this cluster shall do now.
  virtual Async<std::vector<ClusterWish>> desired(ClusterId cluster) = 0;
  // An address from which whoever has it can fetch the model's file for an hour.
  virtual Async<Secret> model_url(std::int64_t model) = 0;
  // Makes an ad-hoc subscription, in place of one of the same name; its tenant and camera are what its name says.
  virtual Async<Nothing> subscribe(SubscriptionRecord wanted) = 0;
  // Ends an ad-hoc subscription; false where there was none.
  virtual Async<bool> unsubscribe(SubscriptionId subscription) = 0;
  // The ad-hoc subscriptions of this camera.
  virtual Async<std::vector<SubscriptionId>> subscriptions_of(CameraId camera) = 0;
  // The token with which this process publishes and follows.
  virtual Async<Secret> token() = 0;
};

}  // namespace weir
