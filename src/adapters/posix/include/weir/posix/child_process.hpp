// Posix processes: ProcessHost on posix_spawn and pidfds. Loop thread only.
#pragma once

#include "weir/ports/process_host.hpp"

#include <boost/asio/io_context.hpp>

namespace weir::posix {

// The helper `weir-NAME` beside this program.
std::string helper_path(std::string_view name);
// What starts this program again: its own file, after an upgrade the new one in its place, and where there is none any
// more the kernel's link to the one that runs.
std::string self_path();

class PosixHost final : public ProcessHost {
 public:
  explicit PosixHost(boost::asio::io_context& io) : io_(io) {}
  Result<std::unique_ptr<Child>> start(const Program& program) override;

 private:
  boost::asio::io_context& io_;
};

}  // namespace weir::posix
