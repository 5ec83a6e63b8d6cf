#include "weir/bucket/bucket.hpp"

#include <gtest/gtest.h>

namespace weir::bucket {

TEST(Bucket, NeverGivesMoreThanItsTokensAndItsRate) {
  Bucket bucket{10, 10, 120};
  int granted = 0;
  LeaseTime now{};
  for (int ms = 0; ms <= 60'000; ms += 50) {
    now = LeaseTime(std::chrono::milliseconds(ms));
    for (int asks = 0; asks < 5; ++asks) {
      auto [next, yes, retry] = consume(bucket, now);
      bucket = next;
      granted += yes;
      EXPECT_LE(bucket.tokens, bucket.capacity);
      EXPECT_GE(bucket.tokens, 0);
    }
    EXPECT_LE(granted, 10 + 2.0 * ms / 1000 + 1e-6);
  }
  EXPECT_GE(granted, 129);
}

TEST(Bucket, RefillsContinuously_NotAMinutesWorthAtOnce) {
  Bucket empty{0, 10, 60};
  EXPECT_FALSE(consume(empty, LeaseTime(999ms)).granted);
  EXPECT_TRUE(consume(empty, LeaseTime(1001ms)).granted);
  EXPECT_DOUBLE_EQ(refilled(empty, LeaseTime(1h)).tokens, 10);
}

TEST(Bucket, SaysWhenTheNextTokenComes) {
  Bucket empty{0.25, 10, 60};
  auto refused = consume(empty, LeaseTime{});
  EXPECT_EQ(refused.retry_after, 750ms);
  EXPECT_TRUE(consume(refused.next, LeaseTime(refused.retry_after)).granted);
}

TEST(Bucket, TimeThatGoesBack_TakesNothingAway) {
  Bucket bucket{3, 10, 60, LeaseTime(100s)};
  Bucket same = refilled(bucket, LeaseTime(50s));
  EXPECT_DOUBLE_EQ(same.tokens, 3);
  EXPECT_EQ(same.updated, LeaseTime(100s));
}

TEST(Bucket, WithoutARefill_TellsToComeBackLater) {
  EXPECT_EQ(consume(Bucket{0, 5, 0}, LeaseTime(1h)).retry_after, 1min);
}

}  // namespace weir::bucket
