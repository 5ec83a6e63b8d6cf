// Demo: simulated cameras that show real footage, for `weir up --demo`.
//
// Starts `weir-camsim` and writes its cameras into the catalog, under a tenant and a site called "demo"; takes them out
// again when it is stopped. Loop thread only.
#pragma once

#include "weir/base/clock.hpp"
#include "weir/ports/catalog.hpp"
#include "weir/ports/process_host.hpp"

namespace weir::apps {

class Demo {
 public:
  Demo(ProcessHost& host, Clock& clock, Catalog& catalog) : host_(host), clock_(clock), catalog_(catalog) {}
  boost::asio::awaitable<Status> start(int cameras, const std::string& footage);
  boost::asio::awaitable<void> stop();

 private:
  boost::asio::awaitable<Status> put_camera(const std::string& name, const std::string& url);

  ProcessHost& host_;
  Clock& clock_;
  Catalog& catalog_;
  std::unique_ptr<Child> camsim_ = {};
  std::vector<CameraId> cameras_ = {};
};

}  // namespace weir::apps
