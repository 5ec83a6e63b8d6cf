// What RedisCoordination does when Redis is gone, emptied, frozen, or somebody else's.
#include "houses.hpp"

#include "weir/base/clock.hpp"

namespace weir::test {
namespace {

class RedisFaults : public testing::Test {
 protected:
  void SetUp() override {
    if (!house.unavailable.empty()) GTEST_SKIP() << house.unavailable;
    ASSERT_TRUE(house.run(c().open_epoch(7)));
  }
  Coordination& c() { return *house.made; }
  bool writes(std::int64_t epoch) {
    return bool(house.run(c().write(epoch, {{.table = ClusterTable::actual, .put = {{"d;c", "1"}}}})));
  }
  CoordinationHouse house{House::redis};
};

TEST_F(RedisFaults, RedisThatIsEmptied_TakesNothing_UntilTheMasterOpensItsEpochAgain) {
  ASSERT_TRUE(writes(7));
  ASSERT_TRUE(house.server->restart_empty());
  std::string reason;
  ASSERT_TRUE(house.until([&] {
    auto written = house.run(c().write(7, {}));
    reason = written ? "written" : written.error().reason;
    return reason != "coordination_unavailable";
  }));
  EXPECT_EQ(reason, "no_epoch");
  ASSERT_TRUE(house.run(c().open_epoch(7)));
  EXPECT_TRUE(writes(7));
}

TEST_F(RedisFaults, Listener_BeginsAnew_AfterRedisWasAway) {
  Listener listener(c(), {"x"});
  ASSERT_TRUE(house.until([&] { return listener.begun == 1; }));
  ASSERT_TRUE(house.server->restart_empty());
  ASSERT_TRUE(house.until([&] { return listener.begun == 2; }));
  ASSERT_TRUE(house.until([&] { return bool(house.run(c().tell("x", "again"))); }));
  EXPECT_TRUE(house.until([&] { return !listener.texts.empty() && listener.texts.back() == "x=again"; }));
}

TEST_F(RedisFaults, ReaderOfDetections_IsToldOfTheGap_WhenRedisWasEmptied) {
  auto id = house.run(c().deliver(7, "x", R"({"n":1})"));
  ASSERT_TRUE(id);
  ASSERT_TRUE(house.server->restart_empty());
  ASSERT_TRUE(house.until([&] { return bool(house.run(c().open_epoch(7))); }));
  auto page = house.run(c().detections_after(*id, 10));
  ASSERT_TRUE(page);
  EXPECT_TRUE(page->gap);
  auto next = house.run(c().deliver(7, "x", R"({"n":2})"));
  ASSERT_TRUE(next);
  page = house.run(c().detections_after(page->last, 10));
  ASSERT_TRUE(page);
  EXPECT_EQ(page->items, (std::vector<KeptDetection>{{*next, R"({"n":2})"}}));
}

TEST_F(RedisFaults, FrozenRedis_IsGivenUp_AndWorksAgainOnceItAnswers) {
  Listener listener(c(), {"x"});
  ASSERT_TRUE(house.until([&] { return listener.begun == 1; }));
  house.server->freeze();
  Duration stalled = StallMonitor::get().total();
  Instant asked = boot_now();
  auto answer = house.run(c().table(ClusterTable::actual));
  EXPECT_TRUE(within(seconds(boot_now() - asked), 4, stalled));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::unavailable);
  house.server->thaw();
  EXPECT_TRUE(house.until([&] { return writes(7); }));
}

TEST_F(RedisFaults, QuestionsBeyondTheBound_FailAtOnce) {
  auto small = redis::make_coordination(house.io.get_executor(), {.host = "127.0.0.1",
                                                                  .port = house.server->port(),
                                                                  .password = Secret("canary-of-the-test"),
                                                                  .questions_max = 10});
  house.server->freeze();
  int refused = 0, ended = 0;
  for (int n = 0; n < 25; ++n)
    begin<SharedTable>(house.io, small->table(ClusterTable::actual), [&](const Result<SharedTable>& answer) {
      ++ended;
      if (!answer && answer.error().message.find("requests to Redis wait already") != std::string::npos) ++refused;
    });
  EXPECT_TRUE(house.until([&] { return refused == 15; }));
  EXPECT_TRUE(house.until([&] { return ended == 25; })) << "the others end as well, when their time is up";
  house.server->thaw();
}

TEST_F(RedisFaults, WrongPassword_IsSaid_AndNotRepeated) {
  auto stranger = redis::make_coordination(
      house.io.get_executor(),
      {.host = "127.0.0.1", .port = house.server->port(), .password = Secret("canary-wrong"), .answer_within = 300ms});
  auto answer = house.run(stranger->table(ClusterTable::actual));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::unavailable);
  EXPECT_EQ(answer.error().message.find("canary"), std::string::npos);
}

TEST_F(RedisFaults, EndOfTheCoordination_AnswersWhatIsUnderWay) {
  house.server->freeze();
  std::string reason;
  begin<SharedTable>(house.io, c().table(ClusterTable::actual), [&](const Result<SharedTable>& answer) {
    reason = answer ? "answered" : answer.error().reason;
  });
  house.io.restart();
  house.io.poll();
  house.made.reset();
  EXPECT_TRUE(house.until([&] { return reason == "coordination_unavailable"; }));
  house.server->thaw();
}

}  // namespace
}  // namespace weir::test
