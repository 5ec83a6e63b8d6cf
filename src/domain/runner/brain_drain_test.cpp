// A soft drain keeps a camera until its next owner may dial it: no longer than that, and not where the runner cannot
// learn it.
#include "brain_testing.hpp"

#include <gtest/gtest.h>

namespace weir::runner {
namespace {

using namespace testing;

class BrainDrain : public ::testing::Test {
 protected:
  void start(int count, Policy policy = {}) {
    bench = std::make_unique<Bench>(policy);
    bench->list(cameras(count));
    bench->pass(1s);
    ASSERT_EQ(owned(), count);
  }
  int owned() const { return bench->brain.summary().owned; }
  // Another runner takes at once whatever it can have.
  void pass(Duration time) {
    for (Instant until = bench->now + time; bench->now < until;) {
      bench->pass(250ms);
      for (auto& [camera, row] : bench->rows) {
        if (!row.owner.empty()) continue;
        row.owner = "r2";
        bench->feed(LeaseNews{.camera = camera, .runner = RunnerId::trusted("r2")});
      }
    }
  }
  long waits_noted() const {
    return std::ranges::count(bench->notes, "runner.drain_waits", &Note::event);
  }
  std::unique_ptr<Bench> bench;
};

TEST_F(BrainDrain, CamerasOfASiteWhoseBudgetIsUsedUp_StayUntilThereIsAToken) {
  start(6, {.drain_batch = 4});
  bench->budgets["s"] = 2;
  bench->feed(FlagsHeard{.drain = DrainMode::soft});
  bench->budgets["s"] = 0.5;
  pass(5s);
  EXPECT_EQ(owned(), 4) << "as many as could be dialled";
  EXPECT_EQ(waits_noted(), 1);
  bench->budgets["s"] = 1;
  bench->pass(750ms);
  EXPECT_EQ(owned(), 3);
  bench->budgets["s"] = 9;
  pass(3s);
  EXPECT_EQ(owned(), 0);
  EXPECT_EQ(waits_noted(), 1);
}

TEST_F(BrainDrain, OtherSitesDoNotWait_NorIsTheWholeFleetAskedAtOnce) {
  bench = std::make_unique<Bench>(Policy{.drain_batch = 2, .pickup_limit = 60s});
  std::vector<Wish> wishes;
  for (int i = 0; i < 20; ++i) wishes.push_back(wish(fmt::format("c{:02}", i), fmt::format("s{:02}", i)));
  bench->list(wishes);
  bench->pass(1s);
  for (int i = 0; i < 4; ++i) bench->budgets[fmt::format("s{:02}", i)] = 0;
  bench->feed(FlagsHeard{.drain = DrainMode::soft});
  EXPECT_LT(bench->budget_questions, 10);
  pass(15s);
  EXPECT_EQ(owned(), 4);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(bench->rows[CameraId::trusted(fmt::format("c{:02}", i))].owner, "r1");
}

TEST_F(BrainDrain, WithoutAnAnswer_OrAnyHopeOfAToken_ItGoesOn) {
  start(8, {.drain_batch = 2});
  bench->budgets["s"] = std::nullopt;
  bench->feed(FlagsHeard{.drain = DrainMode::soft});
  pass(2500ms);
  EXPECT_LE(owned(), 4);
  int left = owned();
  bench->budgets["s"] = 0;
  pass(9s);
  EXPECT_EQ(owned(), left);
  pass(30s);
  EXPECT_LT(owned(), left) << "for ever is too long";
  EXPECT_GE(owned(), left - 3) << "one by one";
}

TEST_F(BrainDrain, WhereNobodyHasRoom_NobodyIsWaitedFor) {
  start(6, {.drain_batch = 2});
  bench->budgets["s"] = 0;
  bench->feed(FlagsHeard{.drain = DrainMode::soft, .spare = 0});
  bench->pass(4s);
  EXPECT_EQ(owned(), 0);
  EXPECT_EQ(bench->budget_questions, 0);
}

TEST_F(BrainDrain, ThatIsCalledOff_IsForgotten) {
  start(4);
  bench->budgets["s"] = 0;
  bench->feed(FlagsHeard{.drain = DrainMode::soft});
  pass(8s);
  EXPECT_EQ(owned(), 4);
  bench->feed(FlagsHeard{});
  pass(1s);
  bench->feed(FlagsHeard{.drain = DrainMode::soft});
  pass(8s);
  EXPECT_EQ(owned(), 4) << "the time before counted";
  EXPECT_EQ(waits_noted(), 2);
}

// A runner that must be gone by a deadline waits only for as long as the rest can still be handed over by then.
TEST_F(BrainDrain, BeforeADeadline_ItHandsOverWhatIsLeft_RatherThanToKillIt) {
  start(40);
  bench->budgets["s"] = 0;
  bench->feed(StopAsked{bench->now + 60s});
  pass(20s);
  EXPECT_GE(owned(), 38);
  pass(39s);
  ASSERT_TRUE(bench->ended);
  EXPECT_EQ(bench->ended->code, 0);
  EXPECT_EQ(bench->killed, 0);
}

}  // namespace
}  // namespace weir::runner
