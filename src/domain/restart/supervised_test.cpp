#include "weir/restart/supervised.hpp"

#include <gtest/gtest.h>

namespace weir::restart {
namespace {

constexpr Instant kStart{100s};
const Supervision kPolicy;

Supervised running() {
  Supervised process(kStart);
  process.up(kStart);
  return process;
}

TEST(Supervised, OneThatDoesNotGetReady_IsLateAfterItsGrace_AndNotBefore) {
  Supervised process(kStart);
  EXPECT_FALSE(process.fault(kStart + kPolicy.start_grace, kPolicy));
  EXPECT_EQ(process.fault(kStart + kPolicy.start_grace + 1ms, kPolicy), Fault::late);
  EXPECT_TRUE(process.up(kStart + 1s));
  EXPECT_FALSE(process.up(kStart + 2s)) << "once";
  EXPECT_TRUE(process.running());
}

TEST(Supervised, OneThatIsSilentButComputes_HasTheWholeLimit) {
  Supervised process = running();
  Duration cpu = 1s;
  for (Duration t = 1s; t <= kPolicy.silence_limit; t += 1s) {
    process.unanswered(kStart + t, cpu += 10ms, kPolicy);
    EXPECT_FALSE(process.fault(kStart + t, kPolicy)) << seconds(t);
  }
  EXPECT_EQ(process.silent_for(kStart + 20s), 20s);
  EXPECT_EQ(process.fault(kStart + kPolicy.silence_limit + 1ms, kPolicy), Fault::silent);
  process.answered(kStart + 20s, {});
  EXPECT_FALSE(process.fault(kStart + 21s, kPolicy));
  EXPECT_EQ(process.silent_for(kStart + 21s), 0s);
}

TEST(Supervised, OneThatIsSilentAndUsesNoProcessorTime_IsFrozenWithinSeconds) {
  Supervised process = running();
  process.unanswered(kStart + 1s, 5s, kPolicy);
  process.unanswered(kStart + 1500ms, 5s, kPolicy);
  EXPECT_FALSE(process.fault(kStart + 2600ms, kPolicy)) << "too short a time to tell";
  process.unanswered(kStart + 2600ms, 5s, kPolicy);
  EXPECT_EQ(process.fault(kStart + 2600ms, kPolicy), Fault::frozen);
  process.unanswered(kStart + 2700ms, 5s + 1ms, kPolicy);
  EXPECT_FALSE(process.fault(kStart + 2700ms, kPolicy)) << "it has computed after all";
}

TEST(Supervised, WhatTheSupervisorSlept_IsNotHeldAgainstTheProcess) {
  Supervised process = running();
  process.unanswered(kStart + 1s, 5s, kPolicy);
  process.overslept(60s);
  EXPECT_FALSE(process.fault(kStart + 61s, kPolicy));
  EXPECT_FALSE(process.silent());
  EXPECT_EQ(process.fault(kStart + 60s + kPolicy.silence_limit + 1ms, kPolicy), Fault::silent) << "from then on it is";
}

TEST(Supervised, ThatItHangsOrStandsStill_CountsWhenItWasSeenInARow) {
  struct Case {
    Supervised::Look look;
    int looks;
    Fault fault;
  };
  for (const Case& each : {Case{{.hung = true}, kPolicy.hung_looks, Fault::hung},
                           Case{{.still = true}, kPolicy.still_looks, Fault::still}}) {
    Supervised process = running();
    for (int i = 1; i < each.looks; ++i) process.answered(kStart, each.look);
    EXPECT_FALSE(process.fault(kStart, kPolicy));
    process.answered(kStart, {});
    for (int i = 1; i < each.looks; ++i) process.answered(kStart, each.look);
    EXPECT_FALSE(process.fault(kStart, kPolicy)) << "it was well in between";
    process.answered(kStart, each.look);
    EXPECT_EQ(process.fault(kStart, kPolicy), each.fault);
  }
}

TEST(Supervised, OneThatWasAskedToEnd_HasItsGrace_ThoughItAnswers) {
  Supervised process = running();
  process.drained(kStart + 10s);
  process.answered(kStart + 20s, {.hung = true});
  EXPECT_FALSE(process.fault(kStart + 10s + kPolicy.drain_grace, kPolicy));
  EXPECT_EQ(process.fault(kStart + 10s + kPolicy.drain_grace + 1ms, kPolicy), Fault::undrained);
}

TEST(Supervised, OneThatWasKilled_IsKilledOnce_AndIsTheKernelsWhenItDoesNotEnd) {
  Supervised process = running();
  EXPECT_FALSE(process.held_by_kernel(kStart + 1h, kPolicy));
  EXPECT_TRUE(process.kill(kStart, Fault::silent));
  EXPECT_FALSE(process.kill(kStart + 1s, Fault::late));
  EXPECT_EQ(process.killed_for(), Fault::silent);
  EXPECT_FALSE(process.running());
  EXPECT_FALSE(process.fault(kStart + 1h, kPolicy)) << "nothing is left to be done to it";
  EXPECT_FALSE(process.held_by_kernel(kStart + kPolicy.reaped_after - 1ms, kPolicy));
  EXPECT_TRUE(process.held_by_kernel(kStart + kPolicy.reaped_after, kPolicy));
}

TEST(Supervised, AnEnd_IsACrashWhereNobodyWantedIt_AndAFailedStartWhereItNeverGotReady) {
  struct Case {
    const char* life;
    Supervised process;
    int code;
    bool crash, failed_start;
  };
  Supervised starting(kStart), late(kStart), unneeded(kStart), up = running(), draining = running(), killed = running();
  late.kill(kStart, Fault::late);
  unneeded.kill(kStart);
  draining.drained(kStart);
  killed.kill(kStart, Fault::hung);
  for (const Case& each : {Case{"ended before it was ready, in order", starting, 0, true, true},
                           Case{"ended before it was ready", starting, 127, true, true},
                           Case{"killed because it was late", late, 137, true, true},
                           Case{"killed because it was not needed", unneeded, 137, true, false},
                           Case{"ended in order", up, 0, false, false},
                           Case{"crashed", up, 139, true, false},
                           Case{"drained, and crashed at its end", draining, 139, false, false},
                           Case{"killed because it hung", killed, 137, true, false}}) {
    Ending ending = each.process.ending(each.code);
    EXPECT_EQ(ending.crash, each.crash) << each.life;
    EXPECT_EQ(ending.failed_start, each.failed_start) << each.life;
  }
}

}  // namespace
}  // namespace weir::restart
