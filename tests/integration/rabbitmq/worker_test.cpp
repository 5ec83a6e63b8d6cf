// A runner and its worker that publish through a real RabbitMQ.
#include "fleet.hpp"
#include "free_port.hpp"
#include "rabbit_server.hpp"
#include "stall.hpp"

#include "weir/base/json.hpp"
#include "weir/rabbitmq/rabbit_bus.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <gtest/gtest.h>

namespace weir::test {
namespace {

struct Heard {
  boost::asio::io_context io;
  std::vector<DeliveredEvent> events;
  std::unique_ptr<rabbitmq::RabbitBus> bus;

  explicit Heard(const std::string& url) {
    rabbitmq::Config config{.address = *rabbitmq::read_address(url), .connect_within = 10s};
    bus = std::make_unique<rabbitmq::RabbitBus>(io, config);
    boost::asio::co_spawn(io, follow(), boost::asio::detached);
  }
  boost::asio::awaitable<void> follow() {
    for (std::string cursor = "0";;) {
      Subscription rest{.after = cursor};
      Status ended = co_await bus->subscribe(std::move(rest), [&](const DeliveredEvent& event) {
        events.push_back(event);
        cursor = event.cursor;
        return true;
      });
    }
  }
  // The first event with this routing key.
  const DeliveredEvent* with(std::string_view key) {
    io.restart();
    io.poll();
    auto found = std::ranges::find(events, key, &DeliveredEvent::routing_key);
    return found == events.end() ? nullptr : &*found;
  }
};

// Status and errors of a camera that cannot be reached, for which the document holds a lease of three minutes.
TEST(RabbitMq, AWorkerWithAmqpInItsDocument_PublishesThere_AndNeedsNoControlPlane) {
  auto broker = RabbitServer::shared();
  SKIP_WITHOUT_RABBITMQ(broker);
  std::string url = (*broker)->new_url();
  rabbitmq::Address at = *rabbitmq::read_address(url);
  boost::json::object lease{{"version", 7},
                            {"grant_version", 7},
                            {"boot_id", "b1"},
                            {"valid_until_us", (boot_now() + 3min).time_since_epoch().count()}};
  boost::json::object source{{"camera_uuid", "cam-1"},
                             {"tenant_id", "t1"},
                             {"site_id", "s1"},
                             {"url", fmt::format("rtsp://127.0.0.1:{}/nobody", free_port())},
                             {"lease", lease}};
  boost::json::object amqp{{"host", at.host},
                           {"port", at.port},
                           {"vhost", at.vhost},
                           {"user", at.user},
                           {"password", at.password.reveal()},
                           {"ex_status", "elsewhere.topic"}};
  TempDir folder;
  WorkerProcess worker(folder, "worker",
                       {{"runner_id", "r1"}, {"sources", boost::json::array{source}}, {"amqp", amqp}});
  Heard heard(url);
  const DeliveredEvent* error = nullptr;
  ASSERT_TRUE(eventually(60s, [&] {
    error = heard.with("stream.error.t1.s1.cam-1");
    return error != nullptr;
  })) << worker.child().log();
  EXPECT_EQ(error->topic, "elsewhere.topic");
  auto payload = json::parse_text(error->payload);
  ASSERT_TRUE(payload) << error->payload;
  EXPECT_EQ(payload->at("lease_version").as_int64(), 7);
  EXPECT_EQ(worker.child().log().find(RabbitServer::kPassword), std::string::npos);
}

TEST(RabbitMq, WhatARunnerAndItsWorkerSay_GoesToTheBroker_UnderTheirLease_AndNotToTheControlPlane) {
  auto broker = RabbitServer::shared();
  SKIP_WITHOUT_RABBITMQ(broker);
  std::string url = (*broker)->new_url();
  TempDir folder;
  WeirProcess plane(folder.path(), "sqlite:" + folder.path() + "/weir.db");
  plane.furnish(1, fmt::format("rtsp://127.0.0.1:{}/nobody", free_port()));
  ::setenv("EVENTS", url.c_str(), 1);
  Runner runner(WEIR_BINARY, "r1", folder.path() + "/r1",
                {"--control-plane-url", plane.url(), "--auth-secret-file", folder.path() + "/auth.secret",
                 "--prom-manager-port", "0", "--prom-worker-port", "0", "--capacity-streams", "4"});
  ::unsetenv("EVENTS");
  Heard heard(url);
  const DeliveredEvent *beat = nullptr, *error = nullptr;
  ASSERT_TRUE(eventually(60s, [&] {
    beat = heard.with("runner.heartbeat.r1");
    return beat != nullptr;
  })) << runner.log();
  ASSERT_TRUE(eventually(60s, [&] {
    error = heard.with("stream.error.t1.s1.cam-1");
    return error != nullptr;
  })) << runner.log();
  auto payload = json::parse_text(error->payload);
  ASSERT_TRUE(payload) << error->payload;
  std::int64_t version = plane.get("/v1/leases/camera/cam-1").body.at("version").as_int64();
  EXPECT_EQ(payload->at("lease_version").as_int64(), version);
  EXPECT_EQ(payload->at("runner_id"), "r1");
  EXPECT_EQ(error->topic, event::kStatusTopic);
  std::string kept = plane.get("/v1/events?after=0&follow=false").text;
  EXPECT_EQ(kept.find("runner.heartbeat"), std::string::npos) << kept;
  for (int pid : runner.processes()) {
    EXPECT_EQ(text_in_file(fmt::format("/proc/{}/cmdline", pid)).find(RabbitServer::kPassword), std::string::npos);
  }
  for (int pid : runner.workers()) {
    EXPECT_EQ(text_in_file(fmt::format("/proc/{}/environ", pid)).find(RabbitServer::kPassword), std::string::npos);
  }
  EXPECT_EQ(runner.log().find(RabbitServer::kPassword), std::string::npos);
}

}  // namespace
}  // namespace weir::test
