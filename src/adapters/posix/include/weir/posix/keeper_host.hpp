// KeeperHost: KeptHost with one `weir-keeper` (src/keeper) for each kept process, and its records in a folder.
//
// A record belongs to the boot that wrote it (boot_file.hpp); a new boot adopts and ends nothing of an earlier one. One
// process at a time uses the folder: the one that has its BootFile. Loop thread only; files are written and programs
// started by a thread of the host's own, one after the other, because each start takes milliseconds.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/ports/kept_host.hpp"
#include "weir/posix/child_process.hpp"

#include <boost/asio/thread_pool.hpp>

namespace weir::posix {

struct KeeperSettings {
  std::string folder;  // private to this user; its path leaves room for the name of a socket
  BootId boot;
  std::string keeper = helper_path("keeper");  // the program
  Duration stop_grace = 10s;                   // between an order to stop and the end of all
  Duration backstop = 35s;                     // after the deadline of a child that knows it, and ends 30 s after it
  // Whether a record is on the disk, not only in the kernel's memory, before its keeper is started. That takes about
  // 10 ms a start and proves no more: the kernel's memory outlives this process, and no child outlives the kernel.
  bool sync_records = true;
};

class KeeperHost final : public KeptHost {
 public:
  // Makes the folder where there is none.
  static Result<std::unique_ptr<KeeperHost>> create(boost::asio::io_context& io, KeeperSettings settings);
  boost::asio::awaitable<Result<std::unique_ptr<Kept>>> start(KeptSpec spec) override;
  std::vector<std::unique_ptr<Kept>> adopt() override;

 private:
  KeeperHost(boost::asio::io_context& io, KeeperSettings settings)
      : io_(io), settings_(std::move(settings)), processes_(io) {}
  boost::asio::io_context& io_;
  const KeeperSettings settings_;
  PosixHost processes_;
  boost::asio::thread_pool starting_{1};
};

}  // namespace weir::posix
