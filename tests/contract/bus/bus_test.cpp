// What every EventBus promises, over the control plane's own bus, a real RabbitMQ, and the fake of the publisher's
// tests.
#include "houses.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>

namespace weir::test {
namespace {

using Ids = std::vector<std::string>;
using enum Confirmation;

class BusContract : public testing::TestWithParam<BusKind> {
 protected:
  void SetUp() override {
    house = std::make_unique<BusHouse>(GetParam());
    if (!house->unavailable.empty()) GTEST_SKIP() << house->unavailable;
  }
  EventBus& bus() { return *house->bus; }
  // The confirmations, or the reason of the error.
  std::string publish(std::vector<event::Event> events) {
    auto said = house->run(bus().publish(std::move(events)));
    if (!said) return said.error().reason;
    std::string words;
    for (Confirmation each : *said) words += each == accepted ? "a" : each == duplicate ? "d" : "s";
    return words;
  }
  std::string publish(const Ids& ids) {
    std::vector<event::Event> events;
    for (const std::string& id : ids) events.push_back(house->event(id));
    return publish(std::move(events));
  }
  // What the bus keeps begins with these.
  void expect_kept(const Ids& ids) {
    if (!can_subscribe()) return;
    BusListener listener(*house, {.after = "0"}, ids.size());
    EXPECT_TRUE(house->until([&] { return listener.heard->ended.has_value(); })) << listener.heard->events.size();
    EXPECT_EQ(listener.ids(), ids);
  }
  bool can_subscribe() const { return GetParam() != BusKind::fake; }

  std::unique_ptr<BusHouse> house;
};

TEST_P(BusContract, EveryEventOfABatch_IsAnswered) {
  EXPECT_EQ(publish(Ids{"e1", "e2", "e3"}), "aaa");
  EXPECT_EQ(publish(Ids{}), "");
  EXPECT_EQ(publish(Ids{"e4"}), "a");
  expect_kept({"e1", "e2", "e3", "e4"});
}

TEST_P(BusContract, AnEventThatIsPublishedAgain_IsNeitherStaleNorAnError) {
  EXPECT_EQ(publish(Ids{"e1", "e2"}), "aa");
  std::string again = publish(Ids{"e1", "e2"});
  EXPECT_TRUE(again == "dd" || again == "aa") << again;
}

TEST_P(BusContract, PastADeadline_NothingOfTheBatchIsPublished) {
  EXPECT_EQ(publish({house->event("e1"), house->event("e2", boot_now() - 1ms)}), "deadline_passed");
  EXPECT_EQ(publish({house->event("e3", boot_now() + 1min)}), "a");
  EXPECT_EQ(publish({house->event("e4", boot_now())}), "deadline_passed");
  EXPECT_EQ(publish(Ids{"e5"}), "a");
  expect_kept({"e3", "e5"});
}

TEST_P(BusContract, ALargeEvent_ArrivesAsItIs) {
  std::string fill(200'000, 'x');
  EXPECT_EQ(publish({house->event("e1", Instant::max(), fill), house->event("e2")}), "aa");
  if (!can_subscribe()) return;
  BusListener listener(*house, {.after = "0"}, 2);
  ASSERT_TRUE(house->until([&] { return listener.heard->ended.has_value(); }));
  EXPECT_EQ(json::parse_text(listener.heard->events[0].payload)->at("fill"), json::value(fill));
}

TEST_P(BusContract, APublicationThatIsGivenUp_DoesNotSpoilTheNextOne) {
  using namespace boost::asio::experimental::awaitable_operators;
  for (int n = 0; n < 5; ++n) {
    std::vector<event::Event> events(1, house->event(fmt::format("g{}", n)));
    auto give_up = [&]() -> boost::asio::awaitable<Status> {
      co_await (bus().publish(std::move(events)) || house->clock.wait(Duration(200 * n)));
      co_return ok();
    };
    EXPECT_TRUE(house->run(give_up()));
  }
  EXPECT_TRUE(house->until([&] { return publish(Ids{"e1"}) == "a"; }));
}

TEST_P(BusContract, ManyBatches_ArriveInTheirOrder) {
  Ids all;
  for (int batch = 0; batch < 20; ++batch) {
    Ids ids;
    for (int n = 0; n < 50; ++n) ids.push_back(fmt::format("e{}", batch * 50 + n));
    ASSERT_EQ(publish(ids), std::string(50, 'a'));
    all.insert(all.end(), ids.begin(), ids.end());
  }
  expect_kept(all);
}

INSTANTIATE_TEST_SUITE_P(Buses, BusContract, testing::Values(BusKind::http, BusKind::rabbitmq, BusKind::fake),
                         [](const auto& it) {
                           return it.param == BusKind::http ? "Http" : it.param == BusKind::fake ? "Fake" : "RabbitMq";
                         });

// What those promise that can be subscribed to.
class BusSubscription : public BusContract {};

TEST_P(BusSubscription, AnEvent_ArrivesWithItsTopicKeyAndPayload) {
  event::Event said = house->event("e1");
  ASSERT_EQ(publish({said}), "a");
  BusListener listener(*house, {.after = "0"}, 1);
  ASSERT_TRUE(house->until([&] { return listener.heard->ended.has_value(); }));
  EXPECT_TRUE(*listener.heard->ended) << "it ended the subscription itself";
  const DeliveredEvent& heard = listener.heard->events[0];
  EXPECT_EQ(heard.topic, said.topic);
  EXPECT_EQ(heard.routing_key, said.routing_key);
  EXPECT_EQ(*json::parse_text(heard.payload), *json::parse_text(said.payload));
  EXPECT_FALSE(heard.cursor.empty());
  EXPECT_FALSE(heard.after_gap);
}

TEST_P(BusSubscription, FromACursorOn_NothingIsMissed_AndNothingComesTwice) {
  ASSERT_EQ(publish(Ids{"e1", "e2", "e3"}), "aaa");
  BusListener first(*house, {.after = "0"}, 2);
  ASSERT_TRUE(house->until([&] { return first.heard->ended.has_value(); }));
  ASSERT_EQ(publish(Ids{"e4"}), "a");
  BusListener second(*house, {.after = first.heard->events[1].cursor}, 2);
  ASSERT_TRUE(house->until([&] { return second.heard->ended.has_value(); }));
  EXPECT_EQ(second.ids(), (Ids{"e3", "e4"}));
  EXPECT_FALSE(second.heard->events[0].after_gap);
  BusListener again(*house, {.after = first.heard->events[0].cursor}, 3);
  ASSERT_TRUE(house->until([&] { return again.heard->ended.has_value(); }));
  EXPECT_EQ(again.ids(), (Ids{"e2", "e3", "e4"}));
}

TEST_P(BusSubscription, WithoutACursor_OnlyWhatComesIsHeard) {
  ASSERT_EQ(publish(Ids{"before"}), "a");
  BusListener listener(*house, {});
  int n = 0;
  ASSERT_TRUE(house->until([&] {
    publish(Ids{fmt::format("e{}", ++n)});
    return !listener.heard->events.empty();
  }));
  EXPECT_NE(listener.ids().front(), "before");
}

TEST_P(BusSubscription, OnlyWhatThePatternMatches_IsHeard) {
  ASSERT_EQ(publish(Ids{"e1", "e2"}), "aa");
  BusListener other(*house, {.pattern = "lease.#", .after = "0"});
  BusListener matching(*house, {.pattern = "detections.t1.*.c1", .after = "0"}, 3);
  ASSERT_EQ(publish(Ids{"e3"}), "a");
  ASSERT_TRUE(house->until([&] { return matching.heard->ended.has_value(); }));
  EXPECT_EQ(matching.ids(), (Ids{"e1", "e2", "e3"}));
  EXPECT_TRUE(other.heard->events.empty());
}

TEST_P(BusSubscription, AnEventThatIsWrong_IsRefusedAsWrong) {
  event::Event topic = house->event("e1"), key = house->event("e2"),
               heavy = house->event("e3", Instant::max(), std::string(300'000, 'x'));
  topic.topic = "elsewhere.topic";
  key.routing_key = "";
  for (const event::Event& wrong : {topic, key, heavy}) {
    auto said = house->run(bus().publish({wrong}));
    ASSERT_FALSE(said) << wrong.event_id;
    EXPECT_TRUE(said.error().code == Errc::invalid || said.error().code == Errc::too_large) << said.error().message;
  }
  EXPECT_EQ(publish(Ids{"e4"}), "a");
}

INSTANTIATE_TEST_SUITE_P(Buses, BusSubscription, testing::Values(BusKind::http, BusKind::rabbitmq),
                         [](const auto& it) { return it.param == BusKind::http ? "Http" : "RabbitMq"; });

}  // namespace
}  // namespace weir::test
