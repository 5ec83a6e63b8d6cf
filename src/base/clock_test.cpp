#include "weir/base/clock.hpp"

#include "weir/base/backoff.hpp"
#include "weir/base/elapsed.hpp"
#include "weir/base/random.hpp"

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <vector>

namespace weir {
namespace {

namespace asio = boost::asio;

struct VirtualTime : testing::Test {
  asio::io_context io{1};
  VirtualClock clock{io};
  std::vector<std::pair<int, Duration>> fired;

  void at(Duration when, int label) {
    asio::co_spawn(
        io,
        [](VirtualTime& self, Duration due, int name) -> asio::awaitable<void> {
          co_await self.clock.wait(due);
          self.fired.emplace_back(name, self.clock.now().time_since_epoch());
        }(*this, when, label),
        asio::detached);
  }
};
using Fired = std::vector<std::pair<int, Duration>>;

TEST_F(VirtualTime, Timers_FireByDeadline_ThenByArming) {
  at(30ms, 1);
  at(10ms, 2);
  at(30ms, 3);
  at(20ms, 4);
  at(10ms, 5);
  clock.run(Instant{1s});
  EXPECT_EQ(fired, (Fired{{2, 10ms}, {5, 10ms}, {4, 20ms}, {1, 30ms}, {3, 30ms}}));
  EXPECT_EQ(clock.now(), Instant{1s});
}

TEST_F(VirtualTime, Run_StopsAtItsEnd_AndGoesOn) {
  at(10ms, 1);
  at(20ms, 2);
  clock.run(Instant{15ms});
  EXPECT_EQ(fired, (Fired{{1, 10ms}}));
  EXPECT_EQ(clock.now(), Instant{15ms});
  clock.run(Instant{20ms});
  EXPECT_EQ(fired, (Fired{{1, 10ms}, {2, 20ms}}));
}

TEST_F(VirtualTime, ATimerArmedByATimer_KeepsTheOrder) {
  asio::co_spawn(
      io,
      [](VirtualTime& self) -> asio::awaitable<void> {
        for (int i = 0; i < 3; ++i) {
          co_await self.clock.wait(10ms);
          self.fired.emplace_back(0, self.clock.now().time_since_epoch());
        }
      }(*this),
      asio::detached);
  at(25ms, 1);
  clock.run(Instant{1s});
  EXPECT_EQ(fired, (Fired{{0, 10ms}, {0, 20ms}, {1, 25ms}, {0, 30ms}}));
}

TEST_F(VirtualTime, ADeadlineInThePast_ReturnsAtOnce) {
  clock.run(Instant{1s});
  asio::co_spawn(
      io,
      [](VirtualTime& self) -> asio::awaitable<void> {
        co_await self.clock.wait_until(Instant{500ms});
        self.fired.emplace_back(1, self.clock.now().time_since_epoch());
      }(*this),
      asio::detached);
  clock.run(Instant{1s});
  EXPECT_EQ(fired, (Fired{{1, 1s}}));
}

TEST_F(VirtualTime, Cancellation_EndsAWait_Early) {
  asio::cancellation_signal stop;
  bool ended = false;
  asio::co_spawn(
      io,
      [](VirtualTime& self, bool& out) -> asio::awaitable<void> {
        co_await self.clock.wait(1h);
        out = true;
      }(*this, ended),
      asio::bind_cancellation_slot(stop.slot(), asio::detached));
  clock.run(Instant{1s});
  EXPECT_FALSE(ended);
  stop.emit(asio::cancellation_type::terminal);
  clock.run(Instant{2s});
  EXPECT_LT(clock.now(), Instant{1h});
  EXPECT_EQ(clock.now(), Instant{2s});
}

TEST_F(VirtualTime, WallTime_CanStep_WithoutMovingNow) {
  WallTime before = clock.wall();
  clock.step_wall(-1h);
  EXPECT_EQ(clock.wall(), before - 1h);
  EXPECT_EQ(clock.now(), Instant{});
}

TEST_F(VirtualTime, WhatExpiresElsewhere_IsWaitedForByEitherClock) {
  std::optional<Instant> ended;
  auto wait = [&](Duration d) -> asio::awaitable<void> {
    co_await wait_elapsed(clock, d, [] { return false; });
    ended = clock.now();
  };
  asio::co_spawn(io, wait(300s), asio::detached);
  clock.run(Instant(10s));
  EXPECT_FALSE(ended);
  clock.step_wall(1h);
  clock.run(Instant(12s));
  ASSERT_TRUE(ended) << "the wall clock was set forward";
  ended.reset();
  asio::co_spawn(io, wait(300s), asio::detached);
  clock.run(Instant(20s));
  clock.step_wall(-1h);
  clock.run(Instant(400s));
  ASSERT_TRUE(ended) << "it was set back";
  EXPECT_EQ(*ended, Instant(312s));
}

TEST(RealTime, ForEver_DoesNotOverflow_AndThePastReturns) {
  asio::io_context io(1);
  RealClock clock;
  int ended = 0;
  auto wait = [&](Instant until) {
    asio::co_spawn(io, clock.wait_until(until), [&](const std::exception_ptr&) { ++ended; });
  };
  wait(Instant{});
  wait(clock.now() - 1h);
  wait(Instant::max());
  for (int i = 0; i < 1000 && ended < 2; ++i) io.poll();
  EXPECT_EQ(ended, 2);
  Instant before = boot_now();
  EXPECT_LE(before, boot_now());
}

TEST(Backoff, Delays_GrowUpToTheCap_AndStayInTheirJitter) {
  Backoff backoff{.first = 100ms, .cap = 5s, .factor = 2, .jitter = 0.5};
  for (int attempt = 0; attempt < 2000; attempt += attempt < 20 ? 1 : 97)
    for (double draw : {0.0, 0.25, 0.5, 0.999999}) {
      Duration whole = std::min<Duration>(5s, from_seconds(0.1 * std::pow(2.0, std::min(attempt, 40))));
      Duration delay = backoff.delay(attempt, draw);
      EXPECT_GE(delay, whole / 2 - 1us) << attempt;
      EXPECT_LE(delay, whole) << attempt;
    }
  EXPECT_EQ(backoff.delay(0, 0.0), 50ms);
  EXPECT_EQ((Backoff{.first = 1s, .cap = 10s, .jitter = 0}.delay(3, 0.7)), 8s);
  EXPECT_EQ((Backoff{.first = 1s, .cap = 10s, .jitter = 1}.delay(9, 0.0)), 0s);
}

TEST(Backoff, Spread_IsAddedAboveTheDelay_AndAboveTheCap) {
  Backoff backoff{.first = 500ms, .cap = 10s, .jitter = 0, .spread = 250ms};
  EXPECT_EQ(backoff.delay(0, 0.0), 500ms);
  EXPECT_EQ(backoff.delay(1, 0.5), 1125ms);
  EXPECT_EQ(backoff.delay(60, 1.0), 10250ms);
}

TEST(Random, Draws_AreInRange_AndHexIsUnique) {
  for (int i = 0; i < 1000; ++i) {
    double draw = random_unit();
    EXPECT_GE(draw, 0.0);
    EXPECT_LT(draw, 1.0);
  }
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) seen.insert(random_hex(16));
  EXPECT_EQ(seen.size(), 100u);
  EXPECT_EQ(seen.begin()->size(), 32u);
  EXPECT_EQ(random_hex(0), "");
}

}  // namespace
}  // namespace weir
