// Whatever a destination does: it is found out in time, called by its name, and tried again; the stream it comes from does
// not notice, and a stop is a stop at every moment.
#include "fault_proxy.hpp"
#include "forward.hpp"
#include "mediamtx.hpp"
#include "stall.hpp"

#include "shard.hpp"
#include "tls_testing.hpp"

#include "weir/base/clock.hpp"

#include <gtest/gtest.h>

namespace weir::test {
namespace {

class EgressFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string missing = missing_servers(); !missing.empty()) GTEST_SKIP() << missing;
    hub_ = std::make_unique<Hub>(folder_, std::map<std::string, std::string>{{"s1", "h264"}, {"large", "large"}});
  }
  void start_server(int receive_bytes = 0) {
    server_ = std::make_unique<RtmpServer>(folder_);
    proxy_ = std::make_unique<FaultProxy>(fmt::format("rtmp://127.0.0.1:{}", server_->port()), receive_bytes);
  }
  std::string by_proxy() const { return fmt::format("rtmp://127.0.0.1:{}/live/key", proxy_->port()); }
  static std::string kind(const ForwarderProcess& forwarder) {
    return forwarder.last("egress.retry.scheduled", "error.kind");
  }

  TempDir folder_;
  std::unique_ptr<Hub> hub_;
  std::unique_ptr<RtmpServer> server_;
  std::unique_ptr<FaultProxy> proxy_;
};

const boost::json::object kQuick{{"retry_base_delay_ms", 50}, {"retry_max_delay_ms", 200}, {"retry_jitter_ms", 20}};
boost::json::object quick(boost::json::object more) {
  for (const auto& [name, value] : kQuick) more.insert({{name, value}});
  return more;
}

TEST_F(EgressFaults, Refused_ItEndsWith40_AfterAsManyRetriesAsAllowed) {
  ForwarderProcess forwarder(folder_, hub_->base(), fmt::format("rtmp://127.0.0.1:{}/live/key", free_port()),
                             quick({{"retry_max_attempts", 3}}));
  EXPECT_EQ(forwarder.child().wait(20s), 40) << forwarder.child().log();
  EXPECT_EQ(forwarder.events("egress.output.connecting").size(), 4u);
  EXPECT_EQ(forwarder.events("egress.retry.scheduled").size(), 3u);
  EXPECT_EQ(kind(forwarder), "rtmp_refused");
  EXPECT_EQ(forwarder.last("egress.exit", "reason"), "rtmp_refused");
  EXPECT_TRUE(forwarder.events("egress.forwarding.started").empty());
}

TEST_F(EgressFaults, Refused_WithoutABound_ItStays_AndForwardsWhenSomebodyListens) {
  start_server();
  proxy_->cut();
  ForwarderProcess forwarder(folder_, hub_->base(), by_proxy(), kQuick);
  ASSERT_TRUE(eventually(20s, [&] { return forwarder.events("egress.retry.scheduled").size() >= 8; }))
      << forwarder.child().log();
  EXPECT_EQ(forwarder.metric("egress_forwarder_forwarding"), 0);
  EXPECT_GE(forwarder.metric("egress_forwarder_retry_total"), 8);
  proxy_->pass();
  EXPECT_TRUE(forwarder.forwarding()) << forwarder.child().log();
  EXPECT_EQ(forwarder.events("egress.input.connected").size(), 1u) << "the hub's connection was kept";
}

TEST_F(EgressFaults, Denied_ItEndsWith30) {
  start_server();
  ForwarderProcess forwarder(folder_, hub_->base(), server_->url("denied", "key"), kQuick);
  EXPECT_EQ(forwarder.child().wait(20s), 30) << forwarder.child().log();
  EXPECT_EQ(forwarder.last("egress.exit", "reason"), "rtmp_publish_denied");
}

TEST_F(EgressFaults, AKeyThatIsInUse_IsTriedAgain_UntilItIsFree) {
  start_server();
  auto first = std::make_unique<ForwarderProcess>(folder_, hub_->base(), server_->url("live", "key"), kQuick);
  ASSERT_TRUE(first->forwarding()) << first->child().log();
  ForwarderProcess second(folder_, hub_->base(), server_->url("live", "key"), quick({{"instance_id", "i2"}}));
  ASSERT_TRUE(second.said("egress.retry.scheduled")) << second.child().log();
  EXPECT_EQ(kind(second), "rtmp_busy");
  first.reset();
  EXPECT_TRUE(second.forwarding()) << second.child().log();
}

TEST_F(EgressFaults, AResetInTheMiddle_IsSeenAtOnce_AndForwardingGoesOn) {
  start_server();
  ForwarderProcess forwarder(folder_, hub_->base(), by_proxy(), kQuick);
  ASSERT_TRUE(forwarder.forwarding()) << forwarder.child().log();
  proxy_->cut();
  ASSERT_TRUE(forwarder.said("egress.forwarding.stopped", 5s)) << forwarder.child().log();
  EXPECT_EQ(forwarder.last("egress.forwarding.stopped", "reason"), "rtmp_reset");
  proxy_->pass();
  EXPECT_TRUE(eventually(20s, [&] { return forwarder.events("egress.forwarding.started").size() == 2; }))
      << forwarder.child().log();
}

// Two ways to be dead behind a connection that stands: packets vanish on the way, or the reader's kernel takes a few
// kilobytes more and then nothing. Either way no byte is acknowledged any more.
class EgressDead : public EgressFaults, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, EgressDead, ::testing::Values("BlackHole", "StoppedReader"),
                         [](const auto& each) { return each.param; });

TEST_P(EgressDead, IsFoundWithin10s_OfTheLastAcknowledgedByte) {
  start_server(8192);
  ForwarderProcess forwarder(folder_, hub_->base(), by_proxy(), quick({{"stream_id", "large"}}));
  ASSERT_TRUE(forwarder.forwarding()) << forwarder.child().log();
  double acknowledged = forwarder.metric("egress_forwarder_bytes_out_total");
  Instant moved = boot_now();
  Duration stalled = StallMonitor::get().total();
  proxy_->set(std::string(GetParam()) == "BlackHole" ? Fault{.deaf = true} : Fault{.freeze = true});
  ASSERT_TRUE(eventually(20s, [&] {
    double now = forwarder.metric("egress_forwarder_bytes_out_total");
    if (now > acknowledged) moved = boot_now();
    acknowledged = std::max(now, acknowledged);
    return !forwarder.events("egress.forwarding.stopped").empty();
  })) << forwarder.child().log();
  EXPECT_TRUE(within(seconds(boot_now() - moved), 10, stalled));
  EXPECT_EQ(forwarder.last("egress.forwarding.stopped", "reason"), "io_timeout");
  EXPECT_EQ(forwarder.metric("egress_forwarder_forwarding"), 0);
  EXPECT_EQ(forwarder.events("egress.input.connected").size(), 1u) << "the hub's connection was kept";
  proxy_->pass();
  EXPECT_TRUE(eventually(20s, [&] { return forwarder.events("egress.forwarding.started").size() == 2; }))
      << forwarder.child().log();
}

TEST_F(EgressFaults, ASlowReader_CostsPictures_NotTheConnections) {
  start_server(8192);
  ForwarderProcess forwarder(folder_, hub_->base(), by_proxy(), quick({{"stream_id", "large"}}));
  ASSERT_TRUE(forwarder.forwarding()) << forwarder.child().log();
  proxy_->set({.bytes_per_s = 150'000});  // of a megabyte a second
  ASSERT_TRUE(eventually(40s, [&] { return forwarder.metric("weir_egress_dropped_packets_total") > 100; }))
      << forwarder.child().log();
  EXPECT_TRUE(forwarder.said("egress.dropped"));
  EXPECT_EQ(forwarder.events("egress.input.connected").size(), 1u) << "the hub did not notice";
  EXPECT_EQ(forwarder.events("egress.output.connected").size(), 1u) << "slow is not dead";
  proxy_->pass();
  EXPECT_TRUE(forwarder.forwarding());
}

TEST_F(EgressFaults, ADestinationThatNeverAnswers_IsATimeOut) {
  start_server();
  proxy_->black_hole();
  ForwarderProcess forwarder(folder_, hub_->base(), by_proxy(), quick({{"dest_connect_timeout_s", 1}}));
  ASSERT_TRUE(forwarder.said("egress.retry.scheduled")) << forwarder.child().log();
  EXPECT_EQ(kind(forwarder), "rtmp_timeout");
}

TEST_F(EgressFaults, ANameThatDoesNotResolve_AndAPortThatSpeaksNoTls_AreToldApart) {
  start_server();
  ForwarderProcess lost(folder_, hub_->base(), "rtmp://no-such-host.invalid/live/key", kQuick);
  ASSERT_TRUE(lost.said("egress.retry.scheduled")) << lost.child().log();
  EXPECT_EQ(kind(lost), "rtmp_dns");
  ForwarderProcess plain(folder_, hub_->base(), fmt::format("rtmps://127.0.0.1:{}/live/key", server_->http_port()),
                         quick({{"dest_connect_timeout_s", 2}}));
  ASSERT_TRUE(plain.said("egress.retry.scheduled")) << plain.child().log();
  EXPECT_EQ(kind(plain), "rtmp_tls");
}

// ---- TLS ----

// A certificate for 127.0.0.1 with its key, and the authority that signed it.
struct Certified {
  explicit Certified(const TempDir& folder) : server(folder.path() + "/server.pem"), authority(folder.path() + "/ca.pem") {
    net::testing::Authority signer;
    signer.write(authority);
    auto issued = signer.issue("IP:127.0.0.1");
    FILE* file = std::fopen(server.c_str(), "we");
    EXPECT_EQ(::PEM_write_X509(file, issued->x509), 1);
    EXPECT_EQ(::PEM_write_PrivateKey(file, issued->key, nullptr, nullptr, 0, nullptr, nullptr), 1);
    std::fclose(file);
  }
  const std::string server, authority;
};

TEST_F(EgressFaults, OverTls_ACertificateThatNobodyKnows_IsRefused_AndOneThatIsKnownIsNot) {
  if (part("lib/ngx_stream_module.so").empty()) GTEST_SKIP() << "lib/ngx_stream_module.so could not be fetched";
  Certified certified(folder_);
  RtmpServer server(folder_, certified.server);
  std::string to = fmt::format("rtmps://127.0.0.1:{}/live/key", server.tls_port());
  ForwarderProcess stranger(folder_, hub_->base(), to, kQuick);
  ASSERT_TRUE(stranger.said("egress.retry.scheduled")) << stranger.child().log();
  EXPECT_EQ(kind(stranger), "rtmp_tls");
  EXPECT_EQ(server.log().find("publish: name"), std::string::npos) << "the key was not shown to a stranger";
  ForwarderProcess friendly(folder_, hub_->base(), to, quick({{"dest_ca_file", certified.authority}}));
  ASSERT_TRUE(friendly.forwarding()) << friendly.child().log();
  EXPECT_GE(server.watch("key", 3).video, 45);
}

TEST_F(EgressFaults, FromAHubOverTls_TheStreamArrives) {
  if (!MediaMtx::missing().empty()) GTEST_SKIP() << MediaMtx::missing();
  Certified certified(folder_);
  MediaMtx hub(folder_, {.certificate = certified.server});
  auto publisher = hub.publish("live/s1/out");
  start_server();
  ForwarderProcess forwarder(folder_, hub.secure_base(), server_->url("live", "key"), kQuick);
  EXPECT_TRUE(forwarder.forwarding()) << forwarder.child().log() << hub.log();
}

// ---- a stop ----

TEST_F(EgressFaults, SigTerm_AtEveryMoment_EndsItWith0_Within5s) {
  start_server(8192);
  auto stop = [&](ForwarderProcess& forwarder, const char* when) {
    Instant begun = boot_now();
    Duration stalled = StallMonitor::get().total();
    forwarder.child().signal(SIGTERM);
    EXPECT_EQ(forwarder.child().wait(10s), 0) << when << forwarder.child().log();
    EXPECT_TRUE(within(seconds(boot_now() - begun), 5, stalled)) << when;
    EXPECT_EQ(forwarder.last("egress.exit", "exitCode"), "0") << when;
  };
  auto start = [&](const std::string& hub, const std::string& to, boost::json::object more = {}) {
    return std::make_unique<ForwarderProcess>(folder_, hub, to, std::move(more));
  };
  {
    auto forwarder = start(hub_->base(), by_proxy());
    stop(*forwarder, "as soon as it runs");
  }
  {
    FaultProxy hole(hub_->base());
    hole.black_hole();
    auto forwarder = start(fmt::format("rtsp://127.0.0.1:{}", hole.port()), by_proxy(), {{"connect_timeout_s", 60}});
    ASSERT_TRUE(forwarder->said("egress.input.connecting"));
    stop(*forwarder, "while the hub does not answer");
  }
  {
    auto forwarder = start(hub_->base(), by_proxy(), {{"stream_id", "absent"}});
    ASSERT_TRUE(forwarder->said("egress.retry.scheduled"));
    stop(*forwarder, "while it waits for the stream");
  }
  {
    proxy_->black_hole();
    auto forwarder = start(hub_->base(), by_proxy(), {{"dest_connect_timeout_s", 60}});
    ASSERT_TRUE(forwarder->said("egress.output.connecting"));
    stop(*forwarder, "while the destination does not answer");
    proxy_->pass();
  }
  {
    proxy_->cut();
    auto forwarder = start(hub_->base(), by_proxy(), {{"retry_base_delay_ms", 10'000}});
    ASSERT_TRUE(forwarder->said("egress.retry.scheduled"));
    stop(*forwarder, "between two tries");
    proxy_->pass();
  }
  {
    auto forwarder = start(hub_->base(), by_proxy(), {{"stream_id", "large"}});
    ASSERT_TRUE(forwarder->forwarding());
    proxy_->set({.freeze = true});
    ASSERT_TRUE(eventually(10s, [&] { return forwarder->metric("egress_forwarder_forwarding") == 0; }));
    stop(*forwarder, "in the middle of a write that nobody takes");
    proxy_->pass();
  }
  {
    auto forwarder = start(hub_->base(), by_proxy());
    ASSERT_TRUE(forwarder->forwarding()) << forwarder->child().log() << server_->log();
    stop(*forwarder, "while it forwards");
    EXPECT_TRUE(eventually(5s, [&] { return server_->log().find("deleteStream") != std::string::npos; }))
        << "the destination was told";
  }
}

}  // namespace
}  // namespace weir::test
