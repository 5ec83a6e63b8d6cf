// Demo: simulated cameras that show real footage, for `weir up --demo`.
//
// Starts `weir-camsim` and writes its cameras into the catalog, under a tenant and a site called "demo"; takes them out
// again when it is stopped. Everybody is told, as of any other camera. Loop thread only.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/ports/catalog.hpp"
#include "weir/ports/process_host.hpp"

namespace weir::apps {

class Demo {
 public:
  using Tell = std::function<void(std::string_view what, const CameraRecord& camera)>;  // created, updated, deleted
  Demo(ProcessHost& host, Clock& clock, Catalog& catalog, Tell tell)
      : host_(host), clock_(clock), catalog_(catalog), tell_(std::move(tell)) {}
  boost::asio::awaitable<Status> start(int cameras, const std::string& footage);
  // Removes cameras that an earlier run left because it was killed: nobody simulates them any more.
  boost::asio::awaitable<void> remove_left_behind();
  boost::asio::awaitable<void> stop();

 private:
  boost::asio::awaitable<Status> put_camera(const std::string& name, const std::string& url);
  boost::asio::awaitable<void> remove(CameraRecord camera);
  bool left_behind(const camera::Config& camera) const;

  ProcessHost& host_;
  Clock& clock_;
  Catalog& catalog_;
  const Tell tell_;
  std::unique_ptr<Child> camsim_ = {};
  std::vector<CameraRecord> cameras_ = {};
};

}  // namespace weir::apps
