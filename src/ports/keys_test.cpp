#include "weir/ports/keys.hpp"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(KeyUse, IsWorthNoting_WhenAMinuteHasPassed_OrTheClockWentBack) {
  ApiKey used{.id = KeyId::trusted("a"), .role = "viewer", .sub = "x"};
  const WallTime then(1h);
  EXPECT_TRUE(worth_noting(used, then));
  used.last_used_at = then;
  EXPECT_FALSE(worth_noting(used, then));
  EXPECT_FALSE(worth_noting(used, then + 59s));
  EXPECT_TRUE(worth_noting(used, then + 60s));
  EXPECT_TRUE(worth_noting(used, then - 1s));
}

}  // namespace
}  // namespace weir
