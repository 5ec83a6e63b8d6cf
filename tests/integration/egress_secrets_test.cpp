// A stream key is seen by the destination and by nobody else: not in logs, metrics, arguments, environment or descriptors.
#include "forward.hpp"
#include "shard.hpp"
#include "stall.hpp"
#include "where.hpp"

#include <gtest/gtest.h>

#include <dirent.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace weir::test {
namespace {

const std::string kKey = "xyzzy-canary-key", kToken = "plugh%2Fcanary", kTokenPlain = "plugh/canary";

class EgressSecrets : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string missing = missing_servers(); !missing.empty()) GTEST_SKIP() << missing;
  }
  TempDir folder_;
};

int hits(const std::string& text) {
  int found = 0;
  for (const std::string& secret : {kKey, kToken, kTokenPlain})
    for (size_t at = text.find(secret); at != std::string::npos; at = text.find(secret, at + 1)) ++found;
  return found;
}

// Everything that a process shows of itself in /proc, and what can be read from its open files.
int hits_in_proc(int pid) {
  std::string base = fmt::format("/proc/{}/", pid);
  int found = hits(text_in_file(base + "cmdline")) + hits(text_in_file(base + "environ"));
  for (const auto& entry : std::filesystem::directory_iterator(base + "fd")) {
    struct stat about {};
    if (::stat(entry.path().c_str(), &about) == 0 && S_ISREG(about.st_mode)) found += hits(text_in_file(entry.path()));
  }
  return found;
}

int hits_in_files(const std::string& folder) {
  int found = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().filename().string().starts_with("egress"))
      found += hits(text_in_file(entry.path()));
  return found;
}

TEST_F(EgressSecrets, TheKey_IsNowhereToBeSeen_WhileItForwards_IsRefused_IsDenied) {
  Hub hub(folder_, {{"s1", "h264"}});
  RtmpServer server(folder_);
  std::string key = fmt::format("{}?token={}", kKey, kToken);
  boost::json::object loud{{"log_level", "debug"}, {"retry_base_delay_ms", 50}, {"retry_max_delay_ms", 100}};
  struct Case {
    std::string to;
    const char* until;
  };
  for (const Case& each : {Case{server.url("live", key), "egress.forwarding.started"},
                           Case{fmt::format("rtmp://127.0.0.1:{}/live/{}", free_port(), key), "egress.retry.scheduled"},
                           Case{server.url("denied", key), "egress.exit"},
                           Case{fmt::format("rtmp://no-such-host.invalid/live/{}", key), "egress.retry.scheduled"}}) {
    ForwarderProcess forwarder(folder_, hub.base(), each.to, loud);
    ASSERT_TRUE(forwarder.said(each.until)) << each.until << forwarder.child().log();
    if (forwarder.child().running()) {
      EXPECT_EQ(hits_in_proc(forwarder.child().pid()), 0) << each.until;
      EXPECT_EQ(hits(forwarder.child().get("/metrics").text), 0) << each.until;
    }
    EXPECT_EQ(hits(forwarder.child().log()), 0) << forwarder.child().log();
  }
  EXPECT_EQ(hits_in_files(folder_.path()), 0);
  EXPECT_NE(server.log().find(kKey), std::string::npos) << "the destination did get it";
}

// What a process shows in /proc belongs to its user, or to root where nobody may look into it.
TEST_F(EgressSecrets, TheProcess_IsNotDumpable) {
  std::vector<std::string> words{WEIR_EGRESS, "--egress-enabled", "true", "--stream-id", "s1", "--run-id", "r",
                                 "--instance-id", "i", "--mediamtx-rtsp-base", "rtsp://127.0.0.1:1", "--dest-rtmp-url",
                                 "rtmp://127.0.0.1:1/a/k", "--prom-egress-port", "0", "--log-dir", "/dev/null/none"};
  if (::geteuid() == 0)
    words.insert(words.begin(), {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"});
  Program forwarder(folder_.path() + "/out", words);
  if (!eventually(20s, [&] { return forwarder.log().find("egress.starting") != std::string::npos || !forwarder.running(); }) ||
      !forwarder.running())
    GTEST_SKIP() << "another user cannot start the program here: " << forwarder.log();
  struct stat about {};
  ASSERT_EQ(::stat(fmt::format("/proc/{}/environ", forwarder.pid()).c_str(), &about), 0);
  EXPECT_EQ(about.st_uid, 0u);
  EXPECT_NE(text_in_file(fmt::format("/proc/{}/status", forwarder.pid())).find("Uid:\t"), std::string::npos);
  std::ifstream limits(fmt::format("/proc/{}/limits", forwarder.pid()));
  std::string line;
  bool none = false;
  while (std::getline(limits, line)) none |= line.starts_with("Max core file size") && line.find(" 0 ") != std::string::npos;
  EXPECT_TRUE(none);
}

TEST_F(EgressSecrets, ByTheEnvironment_ItWarns_AndTakesItFromThere) {
  Hub hub(folder_, {});
  Program forwarder(folder_.path() + "/out",
                    {"env", "EGRESS_ENABLED=true", "STREAM_ID=s1", "RUN_ID=r", "INSTANCE_ID=i", "PROM_EGRESS_PORT=0",
                     "LOG_DIR=" + folder_.path() + "/logs", "MEDIAMTX_RTSP_BASE=" + hub.base(),
                     "DEST_RTMP_URL=rtmp://127.0.0.1:1/live/" + kKey, WEIR_EGRESS});
  ASSERT_TRUE(eventually(20s, [&] { return forwarder.log().find("egress.retry.scheduled") != std::string::npos; }));
  EXPECT_NE(forwarder.log().find("egress.exposed"), std::string::npos) << forwarder.log();
  EXPECT_EQ(hits(forwarder.log()), 0) << forwarder.log();
  EXPECT_EQ(hits_in_proc(forwarder.pid()), 0);
}

}  // namespace
}  // namespace weir::test
