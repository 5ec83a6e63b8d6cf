#include "weir/runner/load.hpp"

#include "parts_testing.hpp"

namespace weir::runner {
namespace {

using namespace testing;

TEST(Load, CamerasThatAreBehind_CountWhenItHasLasted_AndAreForgottenAfterAsLong) {
  Turn turn = turn_at(kNow, {.overload_after = 10s});
  Load load;
  EXPECT_FALSE(load.look(2, turn));
  pass(turn, 9999ms);
  EXPECT_FALSE(load.look(1, turn));
  EXPECT_TRUE(load.keeps_up());
  pass(turn, 1ms);
  EXPECT_TRUE(load.look(1, turn));
  EXPECT_FALSE(load.keeps_up());
  EXPECT_EQ(load.why_not(1), "1 of its cameras is looked at less often than wanted");
  EXPECT_EQ(load.why_not(2), "2 of its cameras are looked at less often than wanted");
  EXPECT_FALSE(load.look(0, turn));
  pass(turn, 10s);
  EXPECT_TRUE(load.look(0, turn));
  EXPECT_EQ(load.why_not(0), "");
}

TEST(Load, AMomentInWhichAllIsWell_BeginsTheTimeAnew) {
  Turn turn = turn_at(kNow, {.overload_after = 10s});
  Load load;
  load.look(1, turn);
  pass(turn, 9s);
  load.look(0, turn);
  pass(turn, 1s);
  EXPECT_FALSE(load.look(1, turn));
  pass(turn, 9s);
  EXPECT_FALSE(load.look(1, turn));
}

TEST(Load, WhatTheMachineIsShortOf_IsSaidWhenItBeginsAndWhenItEnds) {
  Turn turn = turn_at(kNow);
  Load load;
  for (int beat = 0; beat < 3; ++beat) load.hear({true, "memory is short"}, turn);
  EXPECT_EQ(load.why_not(0), "memory is short");
  load.hear({}, turn);
  EXPECT_EQ(load.why_not(0), "");
  auto notes = only<Note>(turn.take());
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[0].event, "runner.overloaded");
  EXPECT_EQ(notes[1].event, "runner.load_normal");
}

}  // namespace
}  // namespace weir::runner
