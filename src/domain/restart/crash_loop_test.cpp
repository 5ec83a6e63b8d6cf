#include "weir/restart/crash_loop.hpp"

#include <gtest/gtest.h>

namespace weir::restart {
namespace {

TEST(CrashLoop, TheFirstRestartIsAtOnceAndTheNextOnesWaitLonger) {
  CrashLoop loop;
  Instant now{10s};
  loop.crashed(now, 1s, {}, 0.5);
  EXPECT_EQ(loop.next_start(), now);
  Duration before{};
  for (int i = 0; i < 5; ++i) {
    now += 1s;
    loop.crashed(now, 1s, {}, 0.5);
    Duration wait = loop.next_start() - now;
    EXPECT_GT(wait, before);
    before = wait;
  }
}

TEST(CrashLoop, AWorkerThatLivedForAWhileStartsFromTheBeginning) {
  CrashLoop loop;
  Instant now{10s};
  for (int i = 0; i < 4; ++i) loop.crashed(now += 1s, 1s, {}, 0.5);
  loop.crashed(now += 90s, 90s, {}, 0.5);
  EXPECT_EQ(loop.next_start(), now);
}

TEST(CrashLoop, WithinAWindowThereAreNeverMoreStartsThanTheCap) {
  CrashPolicy policy{.backoff = {.first = 1ms, .cap = 2ms}};
  CrashLoop loop;
  Instant now{10s};
  std::deque<Instant> starts{now};
  for (int i = 0; i < 100; ++i) {
    loop.crashed(now, 0s, policy, 0.5);
    now = std::max(now, loop.next_start());
    starts.push_back(now);
    while (starts.front() + policy.window <= now) starts.pop_front();
    ASSERT_LE(std::ssize(starts), policy.most);
  }
}

}  // namespace
}  // namespace weir::restart
