#include "weir/lease/reopen.hpp"

#include "weir/lease/version.hpp"

#include <gtest/gtest.h>

namespace weir::lease {
namespace {

StoreState copy_of_epoch(std::int64_t epoch) {
  StoreState copy;
  copy.epoch = epoch;
  copy.counter = 700;
  copy.lease_now = LeaseTime(100s);
  copy.hold_opened = LeaseTime(90s);
  return copy;
}

TEST(Reopen, EpochRisesAboveTheCopy_AndAboveTheStoreThatItReplaces) {
  struct Case {
    std::int64_t copy;
    std::optional<std::int64_t> replaced;
    bool complete;
    std::int64_t expected;
  };
  for (const Case& each : {Case{1, {}, false, 1 + kEpochLeap}, Case{3, 3, false, 3 + kEpochLeap},
                           Case{3, 40, false, 41}, Case{3, 3 + kEpochLeap, false, 4 + kEpochLeap},
                           Case{3, {}, true, 4}, Case{3, 1, true, 4}, Case{3, 9, true, 10}}) {
    Reopening how{.complete = each.complete, .ttl_max = 60s};
    if (each.replaced) how.replaced = copy_of_epoch(*each.replaced);
    auto opened = reopen(copy_of_epoch(each.copy), how);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->epoch, each.expected) << each.copy;
  }
}

TEST(Reopen, CounterNeverFalls) {
  Reopening how{.replaced = copy_of_epoch(1), .ttl_max = 60s};
  how.replaced->counter = 900;
  EXPECT_EQ(reopen(copy_of_epoch(1), how)->counter, 900);
  how.replaced->counter = 5;
  EXPECT_EQ(reopen(copy_of_epoch(1), how)->counter, 700);
}

TEST(Reopen, EpochThatWasAskedFor_MustBeAboveAllThatIsKnown) {
  Reopening how{.replaced = copy_of_epoch(20), .epoch = 20, .ttl_max = 60s};
  auto refused = reopen(copy_of_epoch(3), how);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, "usage");
  EXPECT_NE(refused.error().message.find("above 20"), std::string::npos) << refused.error().message;
  how.epoch = 21;
  EXPECT_EQ(reopen(copy_of_epoch(3), how)->epoch, 21);
  how.epoch = kEpochMax + 1;
  EXPECT_EQ(reopen(copy_of_epoch(3), how).error().reason, "no_epoch_left");
}

TEST(Reopen, CopyThatMayBeOlder_StaysClosedForTheLongestLease_ACompleteOneDoesNot) {
  StoreState copy = copy_of_epoch(1);
  EXPECT_EQ(reopen(copy, {.ttl_max = 60s})->closed_until, LeaseTime(160s) + kStepMax);
  EXPECT_EQ(reopen(copy, {.complete = true, .ttl_max = 60s})->closed_until, copy.closed_until);
}

TEST(Reopen, FirstTickAfterwards_OpensAHold_HoweverRecentTheLastOne) {
  auto opened = reopen(copy_of_epoch(1), {.complete = true, .ttl_max = 60s});
  ASSERT_TRUE(opened);
  EXPECT_TRUE(tick(*opened, opened->mark + 10s, 6s));
  EXPECT_GT(opened->hold_until, opened->lease_now + 2s);
}

}  // namespace
}  // namespace weir::lease
