// Posix processes: ProcessHost and LastingHost on posix_spawn and pidfds. Loop thread only.
#pragma once

#include "weir/ports/lasting_process.hpp"

#include <boost/asio/io_context.hpp>

namespace weir::posix {

// The helper `weir-NAME` beside this program.
std::string helper_path(std::string_view name);
// What starts this program again: its own file, after an upgrade the new one in its place, and where there is none any
// more the kernel's link to the one that runs.
std::string self_path();

// The process that has this number now.
Result<ProcessMark> mark_of(int pid);

class PosixHost final : public ProcessHost, public LastingHost {
 public:
  explicit PosixHost(boost::asio::io_context& io) : io_(io) {}
  Result<std::unique_ptr<Child>> start(const Program& program) override;
  Result<ProcessMark> start_lasting(const Program& program, const std::string& output) override;
  Result<std::unique_ptr<ProcessWatch>> watch(const ProcessMark& mark) override;

 private:
  boost::asio::io_context& io_;
};

}  // namespace weir::posix
