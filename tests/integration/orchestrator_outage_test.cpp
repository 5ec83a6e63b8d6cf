// Published streams while the control plane is away, or one orchestrator is cut off from it.
#include "fault_proxy.hpp"
#include "stream_rig.hpp"
#include "where.hpp"

#include <csignal>
#include <fstream>

namespace weir::test {
namespace {

class OrchestratorOutage : public StreamRig {
 protected:
  std::vector<std::string> flags(const std::string& id, const std::string& url, const std::string& ttl) const {
    return {"--control-plane-url", url, "--auth-secret-file", plane_->folder() + "/auth.secret", "--orchestrator-id", id,
            "--stream-lease-ttl-s", ttl};
  }
  void open_with_plane(const std::string& url, const std::string& ttl) {
    // The destination is the same MediaMTX, whose port is known only once it runs.
    open({.streams = "other: {mode: passthrough}\n", .flags = flags("first", url, ttl),
          .secret = plane_->folder() + "/auth.secret"});
    destination_ = house_->hub().rtmp_base() + "/dest/key";
    write_text(house_->folder().path() + "/streams.yaml",
               fmt::format("demo: {{mode: passthrough, forward: true, destination: \"{}\"}}\n", destination_));
    house_->kill_orchestrator();
    house_->start();
  }
  // How many senders the destination has at this moment: connections to MediaMTX's RTMP port, as the kernel lists them.
  int senders_now() const {
    constexpr int kEstablished = 1;
    std::string port = destination_.substr(destination_.rfind(':') + 1);
    int wanted = std::atoi(port.c_str()), count = 0;
    std::ifstream table("/proc/net/tcp");
    for (std::string line; std::getline(table, line);) {
      unsigned local = 0, state = 0;
      bool read = std::sscanf(line.c_str(), " %*d: %*8X:%X %*8X:%*X %X", &local, &state) == 2;
      if (read && static_cast<int>(local) == wanted && state == kEstablished) ++count;
    }
    return count;
  }

  TempDir plane_folder_;
  std::unique_ptr<WeirProcess> plane_ =
      std::make_unique<WeirProcess>(plane_folder_.path(), "sqlite:" + plane_folder_.path() + "/weir.db");
  std::string destination_;
};

TEST_F(OrchestratorOutage, AControlPlaneThatIsAwayForLongerThanTheLease_InterruptsNoStream) {
  bool whole = long_run();
  open_with_plane(plane_->url(), whole ? "30" : "4");
  auto publisher = house_->hub().publish(in("demo"));
  ASSERT_TRUE(runs("demo")) << report();
  ASSERT_TRUE(house_->hub().ready("dest/key")) << report();
  std::string worker = sender("demo"), forwarder = source_of("dest/key");
  plane_->kill_hard();
  let_last(whole ? 120s : 14s);
  EXPECT_EQ(sender("demo"), worker) << report();
  EXPECT_EQ(source_of("dest/key"), forwarder) << report();
  plane_->start();
  EXPECT_TRUE(eventually(30s, [&] { return house_->log().find("stream.lease_heard") != std::string::npos; })) << report();
  EXPECT_EQ(sender("demo"), worker) << report();
  EXPECT_EQ(source_of("dest/key"), forwarder) << report();
  EXPECT_EQ(child("demo", "worker", "restarts"), "0");
  EXPECT_EQ(child("demo", "forward", "restarts"), "0");
}

TEST_F(OrchestratorOutage, AnOrchestratorThatDiesMeanwhile_LeavesNobodySendingForLong) {
  open_with_plane(plane_->url(), "4");
  auto publisher = house_->hub().publish(in("demo"));
  ASSERT_TRUE(runs("demo")) << report();
  ASSERT_TRUE(house_->hub().ready("dest/key")) << report();
  plane_->kill_hard();
  let_last(6s);
  house_->kill_orchestrator();
  EXPECT_TRUE(house_->hub().gone(out("demo"), 10s)) << report();
  EXPECT_TRUE(house_->hub().gone("dest/key", 10s)) << report();
}

TEST_F(OrchestratorOutage, AHostThatIsCutOff_IsSucceeded_AndTheDestinationNeverHasTwoSenders) {
  FaultProxy way(plane_->url());
  open_with_plane(way.url(), "4");
  auto publisher = house_->hub().publish(in("demo"));
  ASSERT_TRUE(runs("demo")) << report();
  ASSERT_TRUE(house_->hub().ready("dest/key")) << report();
  std::string other = house_->folder().path() + "/p";
  std::vector<std::string> words{WEIR_BINARY, "orchestrator", "--listen", "127.0.0.1:0", "--state-dir", other};
  for (const std::string& word : house_->hub_flags()) words.push_back(word);
  for (const std::string& word : flags("second", plane_->url(), "4")) words.push_back(word);
  Program second(other + ".log", words);
  ASSERT_TRUE(eventually(20s, [&] { return second.log().find("lease_blocked") != std::string::npos; })) << second.log();
  std::string worker = sender("demo"), forwarder = source_of("dest/key");
  ASSERT_EQ(senders_now(), 1);
  way.cut();
  int most = 0;
  auto succeeded = [&] {
    most = std::max(most, senders_now());
    std::string now = source_of("dest/key");
    return sender("demo") != worker && !now.empty() && now != forwarder;
  };
  EXPECT_TRUE(eventually(30s, succeeded)) << second.log() << report();
  // The first host may open nothing, so it does not take the stream back.
  std::string taken = sender("demo");
  EXPECT_FALSE(eventually(8s, [&] {
    most = std::max(most, senders_now());
    return sender("demo") != taken;
  })) << second.log() << report();
  EXPECT_EQ(most, 1);
  EXPECT_EQ(plane_->get("/v1/streams/demo").field("holder"), "second");
  way.pass();
  EXPECT_TRUE(eventually(20s, [&] { return house_->children().empty(); })) << report();
  EXPECT_EQ(sender("demo"), taken);
  publisher.reset();
  EXPECT_TRUE(house_->hub().gone(out("demo"), 40s)) << second.log();
  EXPECT_TRUE(eventually(20s, [&] { return plane_->get("/v1/streams/demo").field("holder") == "null"; }))
      << "the stream is wound down" << second.log();
  second.signal(SIGTERM);
  EXPECT_EQ(second.wait(20s), 0);
  EXPECT_TRUE(eventually(20s, [&] { return processes_with("--folder=" + other + "/streams").empty(); }));
}

}  // namespace
}  // namespace weir::test
