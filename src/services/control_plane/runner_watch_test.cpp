#include "runner_watch.hpp"

#include <gtest/gtest.h>

namespace weir::control_plane {
namespace {

class Heartbeats : public ::testing::Test {
 protected:
  void beat(const std::string& runner) {
    StoredEvent event;
    event.topic = event::kStatusTopic;
    event.routing_key = "runner.heartbeat." + runner;
    event.payload = R"({"runner_id":")" + runner + R"(","ts":"2026-01-01T00:00:00Z"})";
    event.tenant = TenantId::trusted("t1");
    event.sequence = ++sequence_;
    watch_.note(event, now_);
  }
  // Reads the feed every 200 ms; the runners that become silent meanwhile.
  std::vector<std::string> pass(Duration time, bool readable = true) {
    std::vector<std::string> silent;
    for (Instant end = now_ + time; now_ < end;) {
      now_ += 200ms;
      if (readable) watch_.read(now_);
      for (const RunnerWatch::Silence& each : watch_.newly_silent(now_)) silent.push_back(each.runner.str());
    }
    return silent;
  }
  using Names = std::vector<std::string>;
  RunnerWatch watch_;
  Instant now_ = Instant{} + 1h;
  std::int64_t sequence_ = 0;
};

TEST_F(Heartbeats, OfARunnerThatEnds_AreMissedOnce_UntilItIsHeardAgain) {
  beat("r1"), beat("r2");
  pass(200ms);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(pass(i < 5 ? 800ms : 1200ms), i < 5 ? Names{} : Names{"r1"}) << i;
    beat("r2");
  }
  EXPECT_EQ(watch_.silent(), 1);
  EXPECT_EQ(pass(4s), Names{});
  beat("r1");
  EXPECT_EQ(watch_.silent(), 0);
  beat("r2");
  EXPECT_EQ(pass(4800ms), Names{});
  Names both = pass(600ms);
  EXPECT_EQ(std::set<std::string>(both.begin(), both.end()), (std::set<std::string>{"r1", "r2"}));
}

TEST_F(Heartbeats, ThatCouldNotBeRead_AreNotMissed) {
  beat("r1");
  EXPECT_EQ(pass(2s), Names{});
  EXPECT_EQ(pass(1min, false), Names{});  // the store is away, for the runner as well
  EXPECT_EQ(pass(4s), Names{});
  watch_.forget();
  EXPECT_EQ(pass(4s), Names{});
  EXPECT_EQ(pass(2s), Names{"r1"});
}

TEST_F(Heartbeats, OfARunnerThatStaysAway_AreForgottenAfterAnHour) {
  beat("r1");
  EXPECT_EQ(pass(10s), Names{"r1"});
  EXPECT_EQ(watch_.silent(), 1);
  EXPECT_EQ(pass(1h), Names{});
  EXPECT_EQ(watch_.silent(), 0);
}

}  // namespace
}  // namespace weir::control_plane
