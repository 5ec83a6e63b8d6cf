#include "weir/runner/budgets.hpp"

#include "parts_testing.hpp"

namespace weir::runner {
namespace {

using namespace testing;

const SiteId kSite = SiteId::trusted("s");

TEST(Budgets, NobodyLeavesBeforeTheBudgetIsKnown_AndThenAsManyAsMayDial) {
  Turn turn = turn_at(kNow);
  Budgets budgets;
  EXPECT_FALSE(budgets.may_dial(kSite, turn));
  EXPECT_FALSE(budgets.may_dial(kSite, turn));
  EXPECT_EQ(only<AskBudget>(turn.take()).size(), 1u) << "one question at a time";
  budgets.hear({kSite, 2.5}, turn);
  EXPECT_TRUE(budgets.may_dial(kSite, turn));
  EXPECT_TRUE(budgets.may_dial(kSite, turn));
  EXPECT_FALSE(budgets.may_dial(kSite, turn)) << "half a token is none";
}

TEST(Budgets, WithoutAnAnswer_TheDrainGoesOn) {
  Turn turn = turn_at(kNow);
  Budgets budgets;
  budgets.may_dial(kSite, turn);
  budgets.hear({kSite, std::nullopt}, turn);
  EXPECT_TRUE(budgets.may_dial(kSite, turn));
}

TEST(Budgets, OneThatStaysEmpty_LetsOneLeaveEachTimeThePatienceIsOver_AndSaysItOnce) {
  Turn turn = turn_at(kNow, {.pickup_limit = 10s});
  Budgets budgets;
  budgets.may_dial(kSite, turn);
  budgets.hear({kSite, 0}, turn);
  pass(turn, 9999ms);
  budgets.hear({kSite, 0}, turn);
  EXPECT_FALSE(budgets.may_dial(kSite, turn));
  pass(turn, 1ms);
  EXPECT_TRUE(budgets.may_dial(kSite, turn));
  EXPECT_FALSE(budgets.may_dial(kSite, turn)) << "one";
  auto notes = only<Note>(turn.take());
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].event, "runner.drain_waits");
}

TEST(Budgets, AfterABatch_WhatIsLeftIsAskedForAgain_ButNotAtOnce) {
  Turn turn = turn_at(kNow, {.drain_interval = 1s});
  Budgets budgets;
  budgets.may_dial(kSite, turn);
  budgets.hear({kSite, 9}, turn);
  budgets.batch_left(turn);
  turn.take();
  EXPECT_FALSE(budgets.may_dial(kSite, turn)) << "the next owners are paying now";
  EXPECT_TRUE(turn.take().empty());
  pass(turn, 1s);
  EXPECT_FALSE(budgets.may_dial(kSite, turn));
  EXPECT_EQ(only<AskBudget>(turn.take()).size(), 1u);
}

TEST(Budgets, NoMoreSitesAreAskedAtOnce_ThanABatchHasCameras) {
  Turn turn = turn_at(kNow, {.drain_batch = 2});
  Budgets budgets;
  for (const char* site : {"a", "b", "c", "d"}) budgets.may_dial(SiteId::trusted(site), turn);
  EXPECT_EQ(only<AskBudget>(turn.take()).size(), 2u);
}

}  // namespace
}  // namespace weir::runner
