// FileDisk: what a runner keeps, as files of a private folder and the spool beside it. Everything that may block is
// done on threads of its own. Loop thread only.
#pragma once

#include "weir/ports/runner_disk.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include <atomic>

namespace weir::runner_disk {

class FileDisk final : public RunnerDisk {
 public:
  // `spool` is used on this object's threads alone.
  FileDisk(boost::asio::io_context& io, std::string folder, Spool& spool)
      : io_(io), cameras_(folder + "/cameras.json"), spool_(spool) {}
  boost::asio::awaitable<CameraId> culprit(std::string crash_file) override;
  bool keep_cameras(std::string list) override;
  std::string kept_cameras() override;
  boost::asio::awaitable<std::vector<SpoolContent>> spools() override;
  boost::asio::awaitable<std::uint64_t> drop(SpoolContent left) override;

 private:
  boost::asio::io_context& io_;
  const std::string cameras_;  // the list's file
  Spool& spool_;
  std::atomic<bool> writing_ = false;
  boost::asio::thread_pool threads_{2};  // one may wait in the spool; the last member: joined before the others end
};

}  // namespace weir::runner_disk
