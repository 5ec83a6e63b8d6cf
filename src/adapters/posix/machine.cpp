#include "weir/posix/machine.hpp"

#include <fmt/format.h>

#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
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

struct Memory {
  double total_kb = 0, available_kb = 0;
};

Memory memory() {
  std::ifstream file("/proc/meminfo");
  Memory out;
  double value = 0;
  for (std::string name, unit; file >> name >> value && std::getline(file, unit);) {
    if (name == "MemTotal:") out.total_kb = value;
    if (name == "MemAvailable:") out.available_kb = value;
  }
  return out;
}

double memory_used_pct() {
  Memory now = memory();
  return now.total_kb > 0 ? 100 * (1 - now.available_kb / now.total_kb) : 0;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  utsname system{};  // where the kernel has no name for it, as on most ARM boards
  return ::uname(&system) == 0 ? system.machine : "unknown";
}

double allowed_processors() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<double>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

// The folder of this process's control group and those above it, each of which may have a bound. (Version 1 of
// control groups has a folder for each kind of bound.)
std::vector<std::filesystem::path> control_groups(const std::string& kind) {
  const std::filesystem::path root = "/sys/fs/cgroup";
  std::ifstream file("/proc/self/cgroup");
  std::vector<std::filesystem::path> out{root, root / kind};
  for (std::string line; std::getline(file, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::string kinds = line.substr(first + 1, second - first - 1);
    if (!kinds.empty() && kinds.find(kind) == std::string::npos) continue;
    std::filesystem::path top = kinds.empty() ? root : root / kind;
    for (std::filesystem::path at = line.substr(second + 1); at.has_relative_path(); at = at.parent_path())
      out.push_back(top / at.relative_path());
  }
  return out;
}

double number_in(const std::filesystem::path& file) {
  double number = 0;
  std::ifstream(file) >> number;  // "max" leaves it 0
  return number;
}

double quota_of(const std::filesystem::path& group) {
  double quota = 0, period = 0;
  std::ifstream bound(group / "cpu.max");
  if (!(bound >> quota >> period)) {
    quota = number_in(group / "cpu.cfs_quota_us");
    period = number_in(group / "cpu.cfs_period_us");
  }
  return quota > 0 && period > 0 ? quota / period : 0;
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

MachineFacts machine_facts() {
  MachineFacts out{cpu_name(), allowed_processors(), memory().total_kb / 1000};
  for (const auto& group : control_groups("cpu"))
    if (double quota = quota_of(group); quota > 0) out.processors = std::min(out.processors, quota);
  for (const auto& group : control_groups("memory"))
    for (const char* bound : {"memory.max", "memory.limit_in_bytes"})
      if (double mb = number_in(group / bound) / 1e6; mb > 0) out.memory_mb = std::min(out.memory_mb, mb);
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
