// HttpClusterPlane: the port ClusterPlane (the control plane as a process of a detector cluster asks it), over the HTTP
// API. Whose token it shows and which address it asks is in plane_talk.hpp. Loop thread only; it must outlive its running
// calls.
#pragma once

#include "weir/http_plane/plane_talk.hpp"
#include "weir/ports/cluster_plane.hpp"

namespace weir::http_plane {

class HttpClusterPlane final : public ClusterPlane {
 public:
  static Result<std::unique_ptr<HttpClusterPlane>> create(boost::asio::io_context& io, Clock& clock, Config config);

  Async<std::vector<lease::Answer>> apply(lease::Batch batch) override { return talk_->apply(std::move(batch)); }
  Async<std::vector<ClusterWish>> desired(ClusterId cluster) override;
  Async<Secret> model_url(std::int64_t model) override;
  Async<Nothing> subscribe(SubscriptionRecord wanted) override;
  Async<bool> unsubscribe(SubscriptionId subscription) override;
  Async<std::vector<SubscriptionId>> subscriptions_of(CameraId camera) override;
  Async<Secret> token() override { return talk_->runner_token(); }

 private:
  explicit HttpClusterPlane(std::unique_ptr<PlaneTalk> talk) : talk_(std::move(talk)) {}
  std::unique_ptr<PlaneTalk> talk_;
};

}  // namespace weir::http_plane
