#include "weir/base/alarm.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace weir {
namespace {

namespace asio = boost::asio;

class AlarmTest : public ::testing::Test {
 protected:
  // Waits for each of these moments, one after the other.
  void wait_for(std::vector<Duration> moments) {
    asio::co_spawn(io_, [](AlarmTest* t, std::vector<Duration> all) -> asio::awaitable<void> {
      for (Duration each : all) {
        co_await t->alarm_.wait_until(Instant(each));
        t->woke_.push_back(t->clock_.now().time_since_epoch());
      }
    }(this, std::move(moments)), asio::detached);
  }
  void ring_at(Duration when) {
    asio::co_spawn(io_, [](AlarmTest* t, Duration at) -> asio::awaitable<void> {
      co_await t->clock_.wait_until(Instant(at));
      t->alarm_.ring();
    }(this, when), asio::detached);
  }

  asio::io_context io_{1};
  VirtualClock clock_{io_};
  Alarm alarm_{io_, clock_};
  std::vector<Duration> woke_;
};

TEST_F(AlarmTest, GoesOffAtItsMoment_AndAtOnceForAPastOne) {
  wait_for({2s, 1s, 5s});
  clock_.run(Instant(10s));
  EXPECT_EQ(woke_, (std::vector<Duration>{2s, 2s, 5s}));
}

TEST_F(AlarmTest, Rung_GoesOffSooner_AndTheNextWaitIsNotCutShortByTheOldMoment) {
  wait_for({5s, 8s, 9s});
  ring_at(1s);
  clock_.run(Instant(20s));
  EXPECT_EQ(woke_, (std::vector<Duration>{1s, 8s, 9s}));
}

TEST_F(AlarmTest, Rung_AndThenWantedEarlierThanBefore_GoesOffThen) {
  wait_for({5s, 2s, 5s, 6s});
  ring_at(1s);
  clock_.run(Instant(20s));
  EXPECT_EQ(woke_, (std::vector<Duration>{1s, 2s, 5s, 6s}));
}

TEST_F(AlarmTest, RingingWhereNobodyWaits_DoesNothing) {
  alarm_.ring();
  wait_for({3s});
  clock_.run(Instant(20s));
  EXPECT_EQ(woke_, (std::vector<Duration>{3s}));
}

}  // namespace
}  // namespace weir
