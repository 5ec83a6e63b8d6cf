#include "weir/posix/machine.hpp"

#include <fmt/format.h>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

namespace weir::posix {

namespace {

struct ProcessUse {
  double ticks = 0, mem_mb = 0;
};

ProcessUse process_use(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  // The name may hold blanks; everything after its closing bracket is numbers.
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 2)));
  std::string ignored;
  for (int i = 0; i < 11; ++i) fields >> ignored;
  double user = 0, system = 0, pages = 0;
  fields >> user >> system;
  for (int i = 0; i < 8; ++i) fields >> ignored;
  fields >> pages;
  return {user + system, pages * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6};
}

double memory_used_pct() {
  std::ifstream file("/proc/meminfo");
  double total = 0, available = 0, value = 0;
  for (std::string name, unit; file >> name >> value && std::getline(file, unit);) {
    if (name == "MemTotal:") total = value;
    if (name == "MemAvailable:") available = value;
  }
  return total > 0 ? 100 * (1 - available / total) : 0;
}

}  // namespace

Duration cpu_time(int pid) { return from_seconds(process_use(pid).ticks / static_cast<double>(::sysconf(_SC_CLK_TCK))); }

MachineUsage Machine::look(const std::vector<int>& pids) {
  MachineUsage out;
  double own = 0;
  for (int pid : pids) {
    ProcessUse use = process_use(pid);
    own += use.ticks;
    out.mem_mb += use.mem_mb;
  }
  std::ifstream file("/proc/stat");
  std::string cpu;
  double busy = 0, all = 0, value = 0;
  file >> cpu;
  for (int i = 0; i < 8 && file >> value; ++i) {
    all += value;
    if (i != 3 && i != 4) busy += value;
  }
  auto now = std::chrono::steady_clock::now();
  double passed = std::chrono::duration<double>(now - looked_).count();
  if (looked_ != std::chrono::steady_clock::time_point{} && passed > 0) {
    out.cpu_pct = std::max(0.0, own - own_ticks_) / static_cast<double>(::sysconf(_SC_CLK_TCK)) / passed * 100;
    if (all > all_ticks_) out.host_cpu_pct = 100 * (busy - busy_ticks_) / (all - all_ticks_);
  }
  out.host_mem_pct = memory_used_pct();
  own_ticks_ = own;
  busy_ticks_ = busy;
  all_ticks_ = all;
  looked_ = now;
  return out;
}

size_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return SIZE_MAX;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

}  // namespace weir::posix
