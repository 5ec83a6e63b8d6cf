#include "budget_advice.hpp"

#include <gtest/gtest.h>

namespace weir::apps {
namespace {

TEST(BudgetAdvice, CamerasBeyondTheBucket_FollowAtItsRate) {
  EXPECT_EQ(takeover_of({"s", 10, 10, 60}), 8s);
  EXPECT_EQ(takeover_of({"s", 20, 10, 60}), 18s);
  EXPECT_EQ(takeover_of({"s", 20, 10, 600}), 9s);
  EXPECT_EQ(takeover_of({"s", 11, 10, 0}), std::nullopt);
  EXPECT_EQ(takeover_of({"s", 0, 10, 0}), 8s);
}

TEST(BudgetAdvice, MoreThanTenSeconds_IsAWarning_WithTheCommandThatMendsIt) {
  EXPECT_EQ(budget_warning({"s-01", 12, 10, 60}), "");
  EXPECT_EQ(budget_warning({"s-01", 20, 10, 60}),
            "a takeover of all 20 cameras of site s-01 would take about 18 s: its budget allows 10 connections at once and "
            "60 a minute after that; if the recorder there bears more: weir site budget s-01 --capacity 20");
  EXPECT_NE(budget_warning({"s-01", 20, 10, 0}).find("would never end"), std::string::npos);
}

}  // namespace
}  // namespace weir::apps
