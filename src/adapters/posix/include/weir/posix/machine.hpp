// Machine: what processes and the whole machine use, between two looks, and what this one may use. Main thread only.
#pragma once

#include "weir/base/time.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace weir::posix {

struct MachineUsage {
  double cpu_pct = 0, mem_mb = 0;             // of the given processes; 100 is one core
  double host_cpu_pct = 0, host_mem_pct = 0;  // of everything; 100 is all cores
};

// What a process has used of the processors since it began, in steps of the kernel's tick (10 ms); 0 of none. Any thread.
Duration cpu_time(int pid);

class Machine {
 public:
  // Shares of the time since the last look.
  MachineUsage look(const std::vector<int>& pids);

 private:
  double own_ticks_ = 0, busy_ticks_ = 0, all_ticks_ = 0;
  std::chrono::steady_clock::time_point looked_{};
};

// What this process may use of the machine: fewer processors and less memory than there are where an affinity or a
// control group's quota says so.
struct MachineFacts {
  std::string cpu;        // as /proc/cpuinfo names it
  double processors = 1;  // a quota may leave a part of one
  double memory_mb = 0;   // 0: unknown
};
MachineFacts machine_facts();

// Raises the limit of open files to what the system allows, because most programs are started with a low one: each
// connection is an open file, and each segment of a spool. Children inherit the limit. Returns the new limit.
size_t raise_descriptor_limit();

}  // namespace weir::posix
