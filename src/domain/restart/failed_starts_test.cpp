#include "weir/restart/failed_starts.hpp"

#include <gtest/gtest.h>

namespace weir::restart {
namespace {

constexpr Instant kNow{100s};

TEST(FailedStarts, SoManyInARow_SayThatNoneStarts_AndThatIsSaidOnce) {
  FailedStarts starts;
  EXPECT_FALSE(starts.failed(kNow, 3));
  EXPECT_FALSE(starts.failed(kNow, 3));
  EXPECT_FALSE(starts.none_starts(3));
  EXPECT_TRUE(starts.failed(kNow, 3));
  EXPECT_TRUE(starts.none_starts(3));
  EXPECT_FALSE(starts.failed(kNow, 3)) << "said already";
}

TEST(FailedStarts, OneThatSucceeds_EndsTheRow) {
  FailedStarts starts;
  for (int i = 0; i < 2; ++i) starts.failed(kNow, 3);
  EXPECT_FALSE(starts.succeeded(3)) << "nobody was told that none starts";
  for (int i = 0; i < 2; ++i) starts.failed(kNow, 3);
  EXPECT_FALSE(starts.none_starts(3)) << "the row began anew";
  starts.failed(kNow, 3);
  EXPECT_TRUE(starts.succeeded(3));
  EXPECT_FALSE(starts.none_starts(3));
}

TEST(FailedStarts, WhileNoneStarts_WorkIsOfferedNowAndThen_AndAStartIsRiskedAfterAPause) {
  FailedStarts starts;
  EXPECT_FALSE(starts.offer_due(kNow, 1));
  starts.failed(kNow, 1);
  EXPECT_TRUE(starts.offer_due(kNow, 1));
  EXPECT_FALSE(starts.offer_due(kNow + 4s, 1));
  EXPECT_TRUE(starts.offer_due(kNow + 5s, 1));
  EXPECT_FALSE(starts.rested(kNow + 29s));
  EXPECT_TRUE(starts.rested(kNow + 30s));
}

}  // namespace
}  // namespace weir::restart
