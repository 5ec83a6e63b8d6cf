// The definitions that operators load into a broker are those that the bus declares, and the permissions that the
// manual names are enough.
#include "houses.hpp"
#include "where.hpp"

namespace weir::test {
namespace {

TEST(RabbitDefinitions, LoadedIntoABroker_AreWhatTheBusNeeds_AndItsQueuesGetTheEvents) {
  auto found = RabbitServer::shared();
  SKIP_WITHOUT_RABBITMQ(found);
  RabbitServer& broker = **found;
  broker.control("import_definitions " WEIR_SOURCE_DIR "/deploy/rabbitmq/definitions.json");
  broker.control("add_user worker canary-of-the-worker");
  const char* only = R"('^((detections|status|control)\.topic|weir\.events)$')";
  broker.control(fmt::format("set_permissions -p weir worker {0} {0} {0}", only));
  BusHouse house(BusKind::rabbitmq);
  house.url = fmt::format("amqp://worker:canary-of-the-worker@127.0.0.1:{}/weir", broker.port());
  house.bus = house.connect();
  std::vector<event::Event> events{house.event("e1"), house.event("e2")};
  events[1].topic = event::kStatusTopic;
  events[1].routing_key = "stream.status.t1.s1.c1";
  auto said = house.run(house.bus->publish(std::move(events)));
  ASSERT_TRUE(said) << said.error().message << broker.log();
  BusListener listener(house, {.after = "0"}, 2);
  ASSERT_TRUE(house.until([&] { return listener.heard->ended.has_value(); }));
  EXPECT_TRUE(*listener.heard->ended) << listener.heard->ended->error().message;
  EXPECT_NE(broker.control("list_queues -p weir name messages_ready").find("weir.detections\t1"), std::string::npos);
  // A status waits for its reader for ten seconds only.
  EXPECT_TRUE(house.until([&] {
    return broker.control("list_queues -p weir name messages_ready").find("weir.status\t0") != std::string::npos;
  }));
}

}  // namespace
}  // namespace weir::test
