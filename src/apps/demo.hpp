// Demo: simulated cameras that show real footage, for `weir up --demo`.
//
// Starts `weir-camsim` and writes its cameras into the catalog, under a tenant and a site called "demo"; takes them out
// again when it is stopped. Loop thread only.
#pragma once

#include "child_process.hpp"

#include "weir/ports/catalog.hpp"

namespace weir::apps {

class Demo {
 public:
  Demo(boost::asio::io_context& io, Clock& clock, Catalog& catalog) : io_(io), clock_(clock), catalog_(catalog) {}
  boost::asio::awaitable<Status> start(int cameras, const std::string& footage);
  boost::asio::awaitable<void> stop();

 private:
  boost::asio::awaitable<Status> put_camera(const std::string& name, const std::string& url);

  boost::asio::io_context& io_;
  Clock& clock_;
  Catalog& catalog_;
  std::optional<ChildProcess> camsim_ = {};
  std::vector<CameraId> cameras_ = {};
};

}  // namespace weir::apps
