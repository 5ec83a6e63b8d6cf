// What every fuzzer of a connection checks: a call ends within its bound, a log holds no secret, no descriptor is left.
// One thread only.
#pragma once

#include "target.hpp"

#include "stall.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/log.hpp"

#include <fmt/format.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

namespace weir::fuzz {

// Everything that is logged, in memory.
class LogFile {
 public:
  LogFile() : fd_(memfd_create("log", MFD_CLOEXEC)) { log::configure({.level = log::Level::debug, .fd = fd_}); }
  LogFile(const LogFile&) = delete;
  ~LogFile() {
    log::configure({.level = log::Level::off});
    ::close(fd_);
  }
  std::string take() {
    std::string text(static_cast<size_t>(lseek(fd_, 0, SEEK_CUR)), '\0');
    ssize_t size = pread(fd_, text.data(), text.size(), 0);
    text.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
    lseek(fd_, 0, SEEK_SET);
    return text;
  }

 private:
  int fd_;
};

inline void check_silent(std::span<const std::string_view> secrets, std::string_view where, const std::string& text) {
  for (std::string_view secret : secrets)
    check(text.find(secret) == std::string::npos, fmt::format("{} holds a secret: {}", where, text));
}

// What a call answers, if it ends within its bound; time in which the machine stood still does not count.
template <class Call>
auto within(std::string_view name, Duration limit, const Call& call) {
  Instant start = boot_now();
  Duration stalled = test::StallMonitor::get().total();
  auto result = call();
  Duration took = boot_now() - start - (test::StallMonitor::get().total() - stalled);
  check(took <= limit, fmt::format("{} took {:.1f} s, and may take {:.1f} s", name, seconds(took), seconds(limit)));
  return result;
}

inline std::ptrdiff_t open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

}  // namespace weir::fuzz
