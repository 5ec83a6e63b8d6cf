#include "weir/posix/household.hpp"

#include "weir/base/clock.hpp"

#include <fmt/format.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>

namespace weir::posix {

namespace {

constexpr Duration kPatience = 5s;

// The children of this process, or nothing where they cannot be listed. A child that ended is among them until it is
// waited for.
std::optional<std::vector<int>> children() {
  std::ifstream file(fmt::format("/proc/self/task/{}/children", ::getpid()));
  if (!file) return std::nullopt;
  return std::vector<int>(std::istream_iterator<int>(file), {});
}

}  // namespace

PosixHousehold::PosixHousehold() : foreign_(children().value_or(std::vector<int>())) {}

bool PosixHousehold::end_all() {
  Instant until = boot_now() + kPatience;
  for (;;) {
    auto own = children();
    if (own) std::erase_if(*own, [&](int pid) { return std::ranges::find(foreign_, pid) != foreign_.end(); });
    for (int pid : own.value_or(std::vector<int>())) ::kill(pid, SIGKILL);
    int ended = ::waitpid(-1, nullptr, WNOHANG);
    if (ended < 0 && errno == ECHILD) return true;
    if (ended > 0) continue;
    if (own && own->empty() && !foreign_.empty()) return true;
    if (boot_now() > until) return false;
    ::usleep(2000);
  }
}

}  // namespace weir::posix
