// What RabbitBus promises while the broker, or the way to it, misbehaves.
#include "houses.hpp"

#include "fault_proxy.hpp"
#include "log_lines.hpp"

#include <boost/asio/steady_timer.hpp>

#include <map>

namespace weir::test {
namespace {

using Ids = std::vector<std::string>;

// The longest time for which the loop did not come to its turn.
class LoopWatch {
 public:
  explicit LoopWatch(boost::asio::io_context& io) : timer_(io) { look(); }
  double longest_s() const { return seconds(longest_); }
  // What passes outside of the loop does not count.
  void pause() { timer_.cancel(); }
  void look() {
    Instant asked = boot_now();
    timer_.expires_after(kEvery);
    timer_.async_wait([this, asked](boost::system::error_code cancelled) {
      if (cancelled) return;
      longest_ = std::max(longest_, boot_now() - asked - kEvery);
      look();
    });
  }

 private:
  static constexpr Duration kEvery = 5ms;
  boost::asio::steady_timer timer_;
  Duration longest_{};
};

// A worker's publisher in short: three cameras, batches, everything again after an error.
struct Chatter {
  explicit Chatter(BusHouse& in) : house(in) {}
  std::vector<event::Event> batch() const {
    std::vector<event::Event> events;
    for (int n = next; n < next + 6; ++n) {
      event::Event event = house.event(fmt::format("e{}", n));
      event.routing_key = fmt::format("detections.t1.s1.c{}", n % 3);
      events.push_back(std::move(event));
    }
    return events;
  }
  boost::asio::awaitable<void> run() {
    while (!stop) {
      std::vector<event::Event> events = batch();
      auto said = co_await house.bus->publish(std::move(events));
      if (said) next += 6;
      else ++errors[said.error().reason];
      if (!said) co_await house.clock.wait(20ms);
    }
    ended = true;
  }
  BusHouse& house;
  int next = 0;  // everything below is confirmed
  std::map<std::string, int> errors;
  bool stop = false, ended = false;
};

class RabbitFaults : public testing::Test {
 protected:
  void SetUp() override {
    auto found = RabbitServer::shared();
    SKIP_WITHOUT_RABBITMQ(found);
    broker = *found;
    house = std::make_unique<BusHouse>(BusKind::rabbitmq);
  }
  // From here on the bus reaches the broker through the proxy.
  void through(FaultProxy& proxy) {
    rabbitmq::Config config = house->patient();
    config.address.port = proxy.port();
    house->bus = std::make_unique<rabbitmq::RabbitBus>(house->io, config);
  }
  std::string proxied() const { return fmt::format("http://127.0.0.1:{}", broker->port()); }
  std::string publish(const std::string& id, Instant deadline = Instant::max(), const std::string& fill = "") {
    std::vector<event::Event> events(1, house->event(id, deadline, fill));
    auto said = house->run(house->bus->publish(std::move(events)));
    return said ? "accepted" : said.error().reason;
  }
  bool publishes(const std::string& id) {
    return house->until([&] { return publish(id) == "accepted"; });
  }
  // The first time that each event stands in the stream, by camera.
  std::map<std::string, std::vector<int>> first_heard(int up_to) {
    std::map<std::string, std::vector<int>> by_camera;
    std::set<int> seen;
    BusListener listener(*house, {.after = "0"});
    EXPECT_TRUE(house->until([&] {
      const auto& ids = listener.heard->events;
      return !ids.empty() && listener.ids().back() == fmt::format("e{}", up_to - 1);
    })) << (listener.heard->ended ? listener.heard->ended->error().message : "");
    for (const DeliveredEvent& each : listener.heard->events) {
      int n = std::stoi(std::string(json::parse_text(each.payload)->at("event_id").as_string()).substr(1));
      if (seen.insert(n).second) by_camera[each.routing_key].push_back(n);
    }
    return by_camera;
  }

  RabbitServer* broker = nullptr;
  std::unique_ptr<BusHouse> house;
};

TEST_F(RabbitFaults, CutRestartAndAlarm_LoseNothingConfirmed_KeepEachCamerasOrder_AndBlockNobody) {
  LogLines log;
  FaultProxy proxy(proxied());
  through(proxy);
  Chatter chatter(*house);
  LoopWatch watch(house->io);
  Duration stalled_before = StallMonitor::get().total();
  boost::asio::co_spawn(house->io, chatter.run(), boost::asio::detached);
  auto goes_on = [&] {
    int from = chatter.next;
    return house->until([&] { return chatter.next >= from + 60; });
  };
  ASSERT_TRUE(goes_on());
  for (int n = 0; n < 3; ++n) {
    proxy.cut();
    int errors = chatter.errors["bus_unavailable"];
    ASSERT_TRUE(house->until([&] { return chatter.errors["bus_unavailable"] > errors; }));
    proxy.pass();
    ASSERT_TRUE(goes_on());
  }
  // Half open: heartbeats notice it.
  proxy.black_hole();
  ASSERT_TRUE(house->until([&] { return chatter.errors["bus_unavailable"] > 8; }));
  proxy.pass();
  ASSERT_TRUE(goes_on());
  auto beside = [&](const std::function<void()>& slow) {  // what this thread does itself blocks nobody else's loop
    watch.pause();
    slow();
    watch.look();
  };
  beside([&] { broker->set_alarm(true); });
  ASSERT_TRUE(house->until([&] { return chatter.errors["broker_blocked"] > 0; }));
  int at_alarm = chatter.next;
  ASSERT_TRUE(house->until([&] { return chatter.errors["broker_blocked"] > 20; }));
  EXPECT_EQ(chatter.next, at_alarm) << "events were accepted during the alarm";
  beside([&] { broker->set_alarm(false); });
  ASSERT_TRUE(goes_on());
  beside([&] { broker->kill(); });
  int errors = chatter.errors["bus_unavailable"];
  ASSERT_TRUE(house->until([&] { return chatter.errors["bus_unavailable"] > errors + 2; }));
  Status up = ok();
  beside([&] { up = broker->run(); });
  ASSERT_TRUE(up) << up.error().message;
  ASSERT_TRUE(goes_on());
  chatter.stop = true;
  ASSERT_TRUE(house->until([&] { return chatter.ended; }));
  EXPECT_TRUE(within(watch.longest_s(), 0.05, stalled_before));
  std::map<std::string, std::vector<int>> expected;
  for (int n = 0; n < chatter.next; ++n) expected[fmt::format("detections.t1.s1.c{}", n % 3)].push_back(n);
  EXPECT_EQ(first_heard(chatter.next), expected);
  EXPECT_FALSE(log.with("rabbitmq.lost").empty());
  EXPECT_FALSE(log.with("rabbitmq.blocked").empty());
  EXPECT_TRUE(log.with(RabbitServer::kPassword).empty());
}

// A queue that is full refuses what is published, until somebody reads it.
TEST_F(RabbitFaults, ARefusal_IsWrittenAgain_UntilItIsAccepted) {
  ASSERT_TRUE(publishes("e0"));
  std::string vhost = house->url.substr(house->url.rfind('/') + 1);
  broker->control(fmt::format(
      R"(eval 'Q = rabbit_misc:r(<<"{0}">>, queue, <<"full">>), rabbit_amqqueue:declare(Q, true, false, [)"
      R"({{<<"x-max-length">>, long, 1}}, {{<<"x-overflow">>, longstr, <<"reject-publish">>}}], none, <<"test">>), )"
      R"(rabbit_binding:add({{binding, rabbit_misc:r(<<"{0}">>, exchange, <<"detections.topic">>), <<"#">>, Q, []}}, )"
      R"(<<"test">>), ok.')",
      vhost));
  auto with_patience = [&](Duration patience) {
    rabbitmq::Config config = house->patient();
    config.answer_within = patience;
    house->bus = std::make_unique<rabbitmq::RabbitBus>(house->io, config);
  };
  with_patience(1s);
  std::string last = "accepted";
  for (int n = 0; last == "accepted" && n < 50; ++n) last = publish(fmt::format("e{}", n));
  EXPECT_EQ(last, "bus_unavailable") << "a broker that goes on refusing is told to the caller";
  with_patience(60s);
  std::vector<event::Event> events(1, house->event("again"));
  std::optional<Result<std::vector<Confirmation>>> answer;
  auto ask = [&]() -> boost::asio::awaitable<void> { answer = co_await house->bus->publish(std::move(events)); };
  boost::asio::co_spawn(house->io, ask(), boost::asio::detached);
  EXPECT_FALSE(house->until([&] { return answer.has_value(); }, 300ms));
  broker->control(fmt::format("purge_queue -p {} full", vhost));
  ASSERT_TRUE(house->until([&] { return answer.has_value(); }));
  EXPECT_TRUE(*answer) << answer->error().message;
}

TEST_F(RabbitFaults, AStreamThatSomebodyRemoved_IsMadeAgain_AndNothingIsAcceptedMeanwhile) {
  ASSERT_TRUE(publishes("e1"));
  broker->control(fmt::format("delete_queue -p {} weir.events", house->url.substr(house->url.rfind('/') + 1)));
  EXPECT_EQ(publish("e2"), "bus_unavailable");
  ASSERT_TRUE(publishes("e2"));
  BusListener listener(*house, {.after = "0"}, 1);
  ASSERT_TRUE(house->until([&] { return listener.heard->ended.has_value(); }));
  EXPECT_EQ(listener.ids(), (Ids{"e2"}));
}

TEST_F(RabbitFaults, ADeadlineThatPassesOnTheWay_EndsThePublication_AndNothingOfItArrivesLater) {
  FaultProxy proxy(proxied(), 4096);
  through(proxy);
  ASSERT_TRUE(publishes("before"));
  proxy.set({.freeze = true});
  std::vector<event::Event> events;
  for (int n = 0; n < 20; ++n)
    events.push_back(house->event(fmt::format("late{}", n), boot_now() + 300ms, std::string(50'000, 'x')));
  Instant asked = boot_now();
  auto said = house->run(house->bus->publish(std::move(events)));
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().reason, "deadline_passed");
  EXPECT_LT(boot_now() - asked, 3s);
  proxy.pass();
  ASSERT_TRUE(publishes("after"));
  BusListener listener(*house, {.after = "0"});
  ASSERT_TRUE(house->until([&] { return !listener.ids().empty() && listener.ids().back() == "after"; }));
  // The proxy, as a network, may hold what was sent in time; what the machine held is gone.
  EXPECT_LT(listener.ids().size(), 2u + 20u);
  EXPECT_EQ(listener.ids().front(), "before");
}

TEST_F(RabbitFaults, AQuietSubscriber_HearsHowFarItIs) {
  std::string progress;
  BusListener listener(*house,
                       {.pattern = "lease.#", .after = "0", .progress = [&](const std::string& at) { progress = at; }});
  ASSERT_TRUE(publishes("e1"));
  ASSERT_TRUE(house->until([&] { return !progress.empty(); }));
  EXPECT_TRUE(listener.heard->events.empty());
}

TEST_F(RabbitFaults, AWrongPassword_IsNotRepeated_AndNobodyWaitsForIt) {
  LogLines log;
  rabbitmq::Config config = house->patient();
  config.address.password = Secret("canary-that-is-wrong");
  house->bus = std::make_unique<rabbitmq::RabbitBus>(house->io, config);
  std::vector<event::Event> events(1, house->event("e1"));
  auto said = house->run(house->bus->publish(std::move(events)));
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().code, Errc::unavailable);
  EXPECT_NE(said.error().message.find("login"), std::string::npos) << said.error().message;
  EXPECT_EQ(said.error().message.find("canary"), std::string::npos);
  Instant asked = boot_now();
  EXPECT_EQ(publish("e1"), "bus_unavailable");
  EXPECT_LT(boot_now() - asked, 3s);
  EXPECT_TRUE(log.with("canary").empty());
  EXPECT_FALSE(log.with("rabbitmq.lost").empty());
}

TEST_F(RabbitFaults, OverTls_TheBrokersCertificateIsChecked) {
  rabbitmq::Config config = house->patient();
  config.ca_file = broker->ca_file();
  config.address.host = "localhost";
  config.address.port = broker->tls_port();
  config.address.tls = true;
  auto through_tls = [&] {
    house->bus = std::make_unique<rabbitmq::RabbitBus>(house->io, config);
    std::vector<event::Event> events(1, house->event("e1"));
    auto said = house->run(house->bus->publish(std::move(events)));
    return said ? "" : said.error().message;
  };
  EXPECT_EQ(through_tls(), "");
  config.address.host = "127.0.0.1";
  EXPECT_NE(through_tls().find("hostname"), std::string::npos) << "the certificate is localhost's";
  config.address.host = "localhost";
  config.ca_file = {};
  EXPECT_NE(through_tls().find("SSL"), std::string::npos) << "nobody knows the authority";
  config.ca_file = "/nowhere.pem";
  EXPECT_NE(through_tls().find("/nowhere.pem"), std::string::npos);
}

}  // namespace
}  // namespace weir::test
