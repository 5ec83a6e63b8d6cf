// Demo: simulated cameras that show real footage, for `weir up --demo`.
//
// Starts `weir-camsim` and writes its cameras into the catalog, under a tenant and a site called "demo"; takes them out
// again when it is stopped. The control plane publishes these changes, as of any other camera. Loop thread only.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/ports/cameras.hpp"
#include "weir/ports/process_host.hpp"
#include "weir/ports/sites.hpp"

namespace weir::apps {

class Demo {
 public:
  using Tell = std::function<void(std::string_view what, const CameraRecord& camera)>;  // created, updated, deleted
  Demo(ProcessHost& host, Clock& clock, Sites& sites, Cameras& cameras, Tell tell)
      : host_(host), clock_(clock), sites_(sites), catalog_(cameras), tell_(std::move(tell)) {}
  boost::asio::awaitable<Status> start(int cameras, const std::string& footage);
  // Removes cameras that an earlier run left because it was killed: they are not simulated any more.
  boost::asio::awaitable<void> remove_left_behind();
  boost::asio::awaitable<void> stop();
  // The address of the first of them; empty where none runs.
  Secret first_url() const { return cameras_.empty() ? Secret() : cameras_.front().config.rtsp_url; }

 private:
  boost::asio::awaitable<Status> put_camera(const std::string& name, const std::string& url);
  boost::asio::awaitable<void> remove(CameraRecord camera);
  bool left_behind(const camera::Config& camera) const;

  ProcessHost& host_;
  Clock& clock_;
  Sites& sites_;
  Cameras& catalog_;
  const Tell tell_;
  std::unique_ptr<Child> camsim_ = {};
  std::vector<CameraRecord> cameras_ = {};
};

}  // namespace weir::apps
