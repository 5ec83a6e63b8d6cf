#include "weir/rollout/rollout.hpp"

#include <gtest/gtest.h>

#include <random>

namespace weir::rollout {
namespace {

struct Shard {
  State state = {};
  Instant now{100s};
  Policy policy = {};

  template <class Expected>
  bool does(const Event& event) {
    auto actions = feed(event);
    return actions.size() == 1 && std::holds_alternative<Expected>(actions[0]);
  }
  std::vector<Action> feed(const Event& event) {
    Step made = step(state, event, now, policy, 0.5);
    state = made.next;
    return made.actions;
  }
};

TEST(Rollout, GreenStandsByTakesOverAndBlueIsDrained) {
  Shard shard;
  EXPECT_TRUE(shard.does<StartGreen>(Needed{}));
  EXPECT_TRUE(shard.feed(Needed{}).empty()) << "one rollout at a time";
  EXPECT_TRUE(shard.feed(GreenReady{}).empty());
  EXPECT_EQ(shard.state.phase, Phase::moving);
  EXPECT_TRUE(shard.does<DrainBlue>(AllMoved{}));
  EXPECT_TRUE(shard.does<PromoteGreen>(BlueGone{}));
  EXPECT_EQ(shard.state.phase, Phase::steady);
}

TEST(Rollout, AGreenThatDoesNotGetReadyIsGivenUpAndTheNextTryWaits) {
  Shard shard;
  shard.feed(Needed{});
  shard.now += shard.policy.ready_within - 1ms;
  EXPECT_TRUE(shard.feed(TimePassed{}).empty());
  shard.now += 1ms;
  EXPECT_TRUE(shard.does<KillGreen>(TimePassed{}));
  EXPECT_EQ(shard.state.phase, Phase::steady);
  EXPECT_TRUE(shard.feed(Needed{}).empty());
  Duration first = shard.state.not_before - shard.now;
  shard.now = shard.state.not_before;
  EXPECT_TRUE(shard.does<StartGreen>(Needed{}));
  EXPECT_TRUE(shard.feed(GreenGone{}).empty());
  EXPECT_GT(shard.state.not_before - shard.now, first);
}

TEST(Rollout, AGreenThatDiesWhileCamerasMoveLeavesThemToBlue) {
  Shard shard;
  shard.feed(Needed{});
  shard.feed(GreenReady{});
  EXPECT_TRUE(shard.feed(GreenGone{}).empty());
  EXPECT_EQ(shard.state.phase, Phase::steady);
  EXPECT_EQ(shard.state.failures, 1);
}

TEST(Rollout, WhileTheStoreIsAwayMovingTakesItsTimeAndWarmingDoesNot) {
  Shard shard;
  shard.feed(Needed{});
  shard.now += shard.policy.ready_within - 1ms;
  EXPECT_TRUE(shard.feed(StoreAway{}).empty());
  EXPECT_TRUE(shard.feed(GreenReady{}).empty());
  shard.now += shard.policy.ready_within - 1ms;
  EXPECT_TRUE(shard.feed(StoreAway{}).empty());
  shard.now += shard.policy.ready_within - 1ms;
  EXPECT_TRUE(shard.feed(TimePassed{}).empty());
  shard.now += 1ms;
  EXPECT_TRUE(shard.does<KillGreen>(TimePassed{}));
  shard.now = shard.state.not_before;
  shard.feed(Needed{});
  shard.now += shard.policy.ready_within - 1ms;
  EXPECT_TRUE(shard.feed(StoreAway{}).empty());
  shard.now += 1ms;
  EXPECT_TRUE(shard.does<KillGreen>(TimePassed{})) << "nobody speaks through it yet";
}

TEST(Rollout, ABlueThatDiesMakesGreenTheWorkerAtOnce) {
  Shard shard;
  shard.feed(Needed{});
  EXPECT_TRUE(shard.does<PromoteGreen>(BlueGone{}));
}

TEST(Rollout, ABlueThatDoesNotDrainIsKilled) {
  Shard shard;
  shard.feed(Needed{});
  shard.feed(GreenReady{});
  shard.feed(AllMoved{});
  shard.now += shard.policy.drain_within;
  EXPECT_TRUE(shard.does<KillBlue>(TimePassed{}));
  EXPECT_TRUE(shard.does<PromoteGreen>(BlueGone{}));
}

TEST(Rollout, NothingIsDrainedBeforeEverythingMoved) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    Shard shard;
    bool green = false, ready = false;
    for (int i = 0; i < 40; ++i) {
      shard.now += 1s * static_cast<int>(random() % 20);
      const Event events[] = {Needed{}, GreenReady{}, GreenGone{}, AllMoved{}, BlueGone{}, TimePassed{}, StoreAway{}};
      const Event& event = events[random() % 7];
      Phase before = shard.state.phase;
      for (const Action& action : shard.feed(event)) {
        if (std::holds_alternative<StartGreen>(action)) {
          ASSERT_FALSE(green);
          green = true;
          ready = false;
        }
        ASSERT_TRUE(!std::holds_alternative<DrainBlue>(action) || (before == Phase::moving && ready));
        ASSERT_TRUE(!std::holds_alternative<KillBlue>(action) || before == Phase::draining);
      }
      if (std::holds_alternative<GreenReady>(event) && before == Phase::warming) ready = true;
      if (shard.state.phase == Phase::steady) green = false;
    }
  }
}

}  // namespace
}  // namespace weir::rollout
