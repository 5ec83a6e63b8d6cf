#include "leash.hpp"

#include <gtest/gtest.h>

namespace weir::keeper {
namespace {

using namespace std::chrono_literals;

Leash leash(Micros backstop = 0s) {
  return Leash({.version = 7, .valid_until = 100s, .stop_grace = 10s, .backstop = backstop});
}

TEST(Leash, EndsAtTheDeadline_OrTheBackstopLater) {
  EXPECT_EQ(leash().kill_at(), 100s);
  EXPECT_EQ(leash(35s).kill_at(), 135s);
}

TEST(Leash, AnExtension_MovesTheDeadline_NeverCloserUnderOneVersion) {
  Leash extended = leash();
  EXPECT_EQ(extended.extend(7, 120s), Extended::yes);
  EXPECT_EQ(extended.kill_at(), 120s);
  EXPECT_EQ(extended.extend(7, 110s), Extended::yes);
  EXPECT_EQ(extended.kill_at(), 120s);
  EXPECT_EQ(extended.extend(8, 90s), Extended::yes);
  EXPECT_EQ(extended.kill_at(), 90s);
}

TEST(Leash, ALowerVersion_IsRefused) {
  Leash taken = leash();
  ASSERT_EQ(taken.extend(9, 120s), Extended::yes);
  EXPECT_EQ(taken.extend(8, 500s), Extended::stale_version);
  EXPECT_EQ(taken.version(), 9);
  EXPECT_EQ(taken.valid_until(), 120s);
}

TEST(Leash, OnceTheEndHasBegun_NoExtensionTakesItBack) {
  Leash late = leash(), backed = leash(35s);
  EXPECT_FALSE(late.over(99s));
  EXPECT_TRUE(late.over(100s));
  EXPECT_EQ(late.extend(8, 200s), Extended::too_late);
  EXPECT_TRUE(late.over(101s));
  EXPECT_FALSE(backed.over(110s));
  EXPECT_EQ(backed.extend(8, 200s), Extended::yes);
  EXPECT_FALSE(backed.over(150s));
}

// A keeper that was stopped looks at its deadline after it has heard what was said meanwhile.
TEST(Leash, AnExtensionThatIsHeardBeforeTheEndBegins_Counts) {
  Leash heard = leash();
  EXPECT_EQ(heard.extend(7, 200s), Extended::yes);
  EXPECT_FALSE(heard.over(150s));
}

TEST(Leash, AnOrderToStop_GivesTheGraceOnce_AndNoExtensionLengthensIt) {
  Leash stopped = leash();
  stopped.stop(20s);
  stopped.stop(25s);
  EXPECT_EQ(stopped.kill_at(), 30s);
  EXPECT_EQ(stopped.extend(8, 500s), Extended::yes);
  EXPECT_EQ(stopped.kill_at(), 30s);
  stopped.kill(27s);
  EXPECT_EQ(stopped.kill_at(), 27s);
}

TEST(Leash, WhatTheChildLeftBehind_HasTheGrace_ButNotPastTheDeadline) {
  Leash early = leash(), late = leash();
  early.child_ended(20s);
  EXPECT_EQ(early.kill_at(), 30s);
  EXPECT_EQ(early.extend(8, 500s), Extended::too_late);
  late.child_ended(95s);
  EXPECT_EQ(late.kill_at(), 100s);
}

}  // namespace
}  // namespace weir::keeper
