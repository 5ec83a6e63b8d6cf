// HttpPlane: the port ControlPlane (the control plane as a runner asks it), over the HTTP API. Whose token it shows and
// which address it asks is in plane_talk.hpp. Loop thread only.
#pragma once

#include "weir/http_plane/plane_talk.hpp"

#include <map>

namespace weir::http_plane {

class HttpPlane final : public ControlPlane {
 public:
  static Result<std::unique_ptr<HttpPlane>> create(boost::asio::io_context& io, Clock& clock, Config config);

  // Another address or key, from the next question on.
  Status use(const std::string& url, Secret api_key);

  Async<Registration> register_runner(Runner runner) override;
  Async<RunnerFlags> heartbeat(RunnerId runner, boost::json::object body) override;
  Async<DesiredCameras> desired(DesiredFilter filter) override;
  Async<std::vector<Holding>> held() override;
  Async<std::vector<lease::LeaseRow>> leases() override;
  Async<std::vector<lease::Answer>> apply(lease::Batch batch) override { return talk_->apply(std::move(batch)); }
  Async<BudgetAnswer> consume(SiteId site, BudgetUse use) override;
  Async<double> budget(SiteId site) override;
  Async<LentToken> worker_token(BootId boot) override { return talk_->worker_token(std::move(boot)); }
  Async<Secret> runner_token() override { return talk_->runner_token(); }
  Async<Nothing> report_crash(CameraId camera, lease::Owner by) override;
  Async<Nothing> send_picture(CameraId camera, RunnerId by, SnapshotPicture picture) override;

 private:
  using Read = PlaneTalk::Read;
  HttpPlane(std::unique_ptr<PlaneTalk> talk, net::HttpClient picture_client)
      : talk_(std::move(talk)), picture_client_(std::move(picture_client)) {}
  void explain_unreadable(const std::string& camera, const Error& why);

  std::unique_ptr<PlaneTalk> talk_;
  net::HttpClient picture_client_;  // an upload that is slow or fails must not cost the leases their connection
  std::map<std::string, std::string> unreadable_;   // what was said about which camera
};

}  // namespace weir::http_plane
