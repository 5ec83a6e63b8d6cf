#include "weir/posix/machine.hpp"

#include <gtest/gtest.h>

#include <sched.h>
#include <unistd.h>

#include <thread>

namespace weir::posix {
namespace {

TEST(MachineFacts, AreThoseOfThisMachine) {
  MachineFacts facts = machine_facts();
  EXPECT_FALSE(facts.cpu.empty());
  EXPECT_GT(facts.processors, 0);
  EXPECT_LE(facts.processors, static_cast<double>(::sysconf(_SC_NPROCESSORS_CONF)));
  EXPECT_GT(facts.memory_mb, 100);
}

// On a thread of its own: the affinity goes with it.
TEST(MachineFacts, AffinityCounts_NotWhatTheMachineHas) {
  std::thread([] {
    cpu_set_t all, one;
    ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
      if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_LE(machine_facts().processors, 1);
  }).join();
}

}  // namespace
}  // namespace weir::posix
