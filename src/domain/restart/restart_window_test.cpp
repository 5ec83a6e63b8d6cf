#include "weir/restart/restart_window.hpp"

#include <gtest/gtest.h>

#include <random>

namespace weir::restart {
namespace {

using enum ExitClass;
constexpr Instant kNow{1000s};
const WindowPolicy kWorker{.backoff = {.first = 500ms, .cap = 30s, .jitter = 0}};
const WindowPolicy kForwarder{.backoff = kWorker.backoff, .when_full = WhenFull::cool_down};

TEST(ExitClass, EveryCode_HasItsClassAndWords) {
  struct Row {
    std::optional<int> code;
    ExitClass is;
    const char* says;
  };
  for (const Row& row : {Row{0, clean, "good order"}, Row{10, configuration, "configuration"},
                         Row{20, input_not_ready, "input"}, Row{30, denied, "denied"}, Row{40, transient, "transient"},
                         Row{50, transient, "internal"}, Row{60, lease_lost, "lease"}, Row{70, transient, "parent"},
                         Row{137, transient, "signal 9"}, Row{139, transient, "signal 11"}, Row{1, transient, "code 1"},
                         Row{127, transient, "code 127"}, Row{std::nullopt, transient, "nobody saw"}}) {
    EXPECT_EQ(classify_exit(row.code), row.is) << row.says;
    EXPECT_NE(describe_exit(row.code).find(row.says), std::string::npos) << describe_exit(row.code);
  }
}

TEST(RestartWindow, TheDelaysGrow_UntilAChildLivedForAWhile) {
  RestartWindow window;
  Instant now = kNow;
  for (Duration expected : {500ms, 1000ms, 2000ms, 4000ms}) {
    EXPECT_EQ(window.ended(transient, now, 1s, kWorker, 0.5), Verdict::again);
    EXPECT_EQ(window.next_start - now, expected);
    EXPECT_FALSE(window.may_start(now));
    now = window.next_start;
    EXPECT_TRUE(window.may_start(now));
    window.started(now);
  }
  window.ended(transient, now += 60s, 60s, kWorker, 0.5);
  EXPECT_EQ(window.next_start - now, 500ms);
  EXPECT_EQ(window.restarts, 4);
}

// One child after another, each of which ends `lived` after its start.
Verdict crash_through(RestartWindow& window, Instant& now, int times, const WindowPolicy& policy, Duration lived = 1s) {
  Verdict last = Verdict::again;
  for (int i = 0; i < times; ++i) {
    now = std::max(now, window.next_start);
    window.started(now);
    last = window.ended(transient, now += lived, lived, policy, 0.5);
  }
  return last;
}

TEST(RestartWindow, AWorkerOverTheLimit_IsGivenUp_UntilItIsForgiven) {
  RestartWindow window;
  Instant now = kNow;
  EXPECT_EQ(crash_through(window, now, 6, kWorker), Verdict::again);
  EXPECT_EQ(crash_through(window, now, 1, kWorker), Verdict::given_up_limit) << "six restarts, and the seventh end";
  EXPECT_FALSE(window.may_start(now + 24h));
  window.forgive();
  EXPECT_TRUE(window.may_start(now));
  EXPECT_EQ(window.restarts, 6) << "people go on counting";
  EXPECT_EQ(crash_through(window, now, 6, kWorker), Verdict::again);
}

TEST(RestartWindow, AForwarderOverTheLimit_CoolsDown_AndGetsAFreshWindow) {
  RestartWindow window;
  Instant now = kNow;
  crash_through(window, now, 6, kForwarder);
  EXPECT_EQ(crash_through(window, now, 1, kForwarder), Verdict::cooling);
  EXPECT_EQ(window.cooling_until, now + 60s);
  EXPECT_TRUE(window.cooling(now + 59s));
  EXPECT_FALSE(window.may_start(now + 59s));
  EXPECT_TRUE(window.may_start(now + 60s));
  EXPECT_EQ(crash_through(window, now, 6, kForwarder), Verdict::cooling)
      << "the start after the cooldown is the first restart of the new window";
}

TEST(RestartWindow, RestartsThatAreOlderThanTheWindow_CountNoMore) {
  RestartWindow window;
  Instant now = kNow;
  EXPECT_EQ(crash_through(window, now, 40, kWorker, 110s), Verdict::again) << "fewer than six in ten minutes";
  EXPECT_LE(window.counted.size(), 6u);
}

TEST(RestartWindow, ConfigurationAndDenial_AreTriedOnceMore_AndThenGivenUp_InBothRoles) {
  for (const WindowPolicy& policy : {kWorker, kForwarder})
    for (ExitClass first : {configuration, denied})
      for (ExitClass second : {configuration, denied}) {
        RestartWindow window;
        EXPECT_EQ(window.ended(first, kNow, 1s, policy, 0.5), Verdict::again);
        window.started(kNow + 1s);
        RestartWindow other = window, calm = window;
        EXPECT_EQ(window.ended(second, kNow + 2s, 1s, policy, 0.5), Verdict::given_up_early);
        EXPECT_FALSE(window.may_start(kNow + 24h));
        EXPECT_EQ(other.ended(transient, kNow + 2s, 1s, policy, 0.5), Verdict::again);
        EXPECT_EQ(other.ended(second, kNow + 9s, 1s, policy, 0.5), Verdict::again) << "not in a row";
        EXPECT_EQ(calm.ended(second, kNow + 61s, 60s, policy, 0.5), Verdict::again) << "it worked for a while";
      }
}

TEST(RestartWindow, AMissingInputAndALostLease_AreNotCounted) {
  RestartWindow window;
  Instant now = kNow;
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(window.ended(input_not_ready, now, 1s, kWorker, 0.5), Verdict::again_uncounted);
    EXPECT_EQ(window.next_start, now + 2s);
    window.started(now = window.next_start);
  }
  EXPECT_EQ(window.ended(lease_lost, now, 1s, kWorker, 0.5), Verdict::again_uncounted);
  window.started(now);
  EXPECT_TRUE(window.counted.empty());
  EXPECT_EQ(window.restarts, 0);
  EXPECT_EQ(window.ended(clean, now, 1s, kWorker, 0.5), Verdict::again) << "an end that nobody asked for counts";
}

// Whatever ends a child, within any ten minutes there are at most six counted restarts.
TEST(RestartWindow, RandomEnds_NeverRestartMoreOftenThanTheLimit) {
  std::mt19937 random(7);
  auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int run = 0; run < 200; ++run) {
    RestartWindow window;
    Instant now = kNow;
    std::vector<Instant> restarts;
    for (int i = 0; i < 60; ++i) {
      Duration lived = Duration(1s) * below(run % 2 == 0 ? 3 : 200);
      Verdict verdict = window.ended(kExitClassNames[static_cast<size_t>(below(6))].value, now += lived, lived, kWorker,
                                     below(100) / 100.0);
      if (window.given_up) {
        EXPECT_TRUE(verdict == Verdict::given_up_early || verdict == Verdict::given_up_limit);
        EXPECT_FALSE(window.may_start(now + 1h));
        break;
      }
      now = std::max(now, window.next_start) + Duration(1s) * below(30);  // the supervisor may be late
      window.started(now);
      if (verdict == Verdict::again) restarts.push_back(now);
      std::erase_if(restarts, [&](Instant at) { return at + kWorker.window <= now; });
      ASSERT_LE(restarts.size(), 6u);
    }
  }
}

TEST(RestartWindow, WhatIsStored_ComesBack_OnAnotherClock) {
  RestartWindow window;
  Instant now = kNow;
  crash_through(window, now, 7, kForwarder);
  crash_through(window, now, 3, kForwarder);
  RestartWindow cooling;
  Instant then = kNow;
  crash_through(cooling, then, 7, kForwarder);
  for (const auto& [each, at] : {std::pair{window, now}, std::pair{cooling, then}}) {
    json::value text = write_window(each, at);
    auto same = read_window(text, at);
    ASSERT_TRUE(same) << same.error().message;
    EXPECT_EQ(*same, each);
    auto later = read_window(text, Instant{5s});
    ASSERT_TRUE(later);
    EXPECT_EQ(write_window(*later, Instant{5s}), text.as_object()) << "after a reboot the clock begins anew";
  }
  EXPECT_EQ(*read_window(json::object{}, kNow), RestartWindow{});
  EXPECT_FALSE(read_window(json::object{{"restart_ages_us", json::array{-5}}}, kNow));
  EXPECT_FALSE(read_window(json::object{{"cooling_us", "soon"}}, kNow));
}

}  // namespace
}  // namespace weir::restart
