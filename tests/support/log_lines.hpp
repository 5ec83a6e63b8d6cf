// LogLines: what is logged while it lives, for tests of what the log says. The log is one for all, so one at a time.
#pragma once

#include "weir/base/log.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

namespace weir::test {

class LogLines {
 public:
  LogLines() { log::configure({.level = log::Level::info, .fd = fd_}); }
  ~LogLines() {
    log::configure({.level = talkative_ ? log::Level::debug : log::Level::off});
    ::close(fd_);
  }
  LogLines(const LogLines&) = delete;

  // Those that hold this text.
  std::vector<std::string> with(std::string_view text) const {
    std::vector<std::string> found;
    std::istringstream lines(all());
    for (std::string line; std::getline(lines, line);)
      if (line.find(text) != std::string::npos) found.push_back(line);
    return found;
  }
  size_t count(std::string_view text) const { return with(text).size(); }
  std::string all() const {
    struct stat about {};
    ::fstat(fd_, &about);
    std::string text(static_cast<size_t>(about.st_size), '\0');
    ssize_t got = ::pread(fd_, text.data(), text.size(), 0);
    text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    return text;
  }

 private:
  const bool talkative_ = log::enabled(log::Level::debug);
  const int fd_ = ::memfd_create("log", MFD_CLOEXEC);
};

}  // namespace weir::test
