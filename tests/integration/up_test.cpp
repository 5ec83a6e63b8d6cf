// `weir up --demo`: a stranger's first minute. And no password of a camera anywhere that others can read.
#include "fleet.hpp"
#include "shard.hpp"
#include "stall.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/json.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace weir::test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// A `weir up` in the background, with what it prints in a file.
class Up {
 public:
  Up(const TempDir& folder, std::vector<std::string> more) : out_(folder.path() + "/up.out"), err_(folder.path() + "/up.err") {
    std::vector<std::string> words{WEIR_BINARY, "up", "--state-dir", folder.path() + "/state", "--listen", "127.0.0.1:0",
                                   "--models-dir", part("models"), "--library-dir", part("lib"),
                                   "--footage", part("footage/vtest.avi"), "--log-level", "debug"};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      for (const char* port : {"PROM_WORKER_PORT", "PROM_MANAGER_PORT"}) ::setenv(port, "0", 1);
      ::dup2(::open(out_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), 1);
      ::dup2(::open(err_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), 2);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
  }
  ~Up() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGTERM);
    wait(30s);
    if (pid_ > 0) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
  }
  int wait(Duration limit) {
    int status = -1;
    if (pid_ < 0) return -1;
    if (eventually(limit, [&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; })) pid_ = -1;
    return pid_ < 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void signal(int number) const { ::kill(pid_, number); }
  int pid() const { return pid_; }
  std::string out() const { return text_of(out_); }
  std::string err() const { return text_of(err_); }
  // Every process below this one.
  std::vector<int> children() const {
    std::multimap<int, int> by_parent;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      std::string pid = entry.path().filename(), stat = text_of((entry.path() / "stat").string());
      size_t name = stat.rfind(')');
      if (pid.find_first_not_of("0123456789") != std::string::npos || name == std::string::npos) continue;
      std::istringstream rest(stat.substr(name + 1));
      std::string state;
      int parent = 0;
      if (rest >> state >> parent; state != "Z") by_parent.emplace(parent, std::stoi(pid));
    }
    std::vector<int> found{pid_};
    for (size_t i = 0; i < found.size(); ++i)
      for (auto [at, end] = by_parent.equal_range(found[i]); at != end; ++at) found.push_back(at->second);
    found.erase(found.begin());
    return found;
  }
  std::vector<int> children_with(const std::string& word) const {
    std::vector<int> found = children();
    std::erase_if(found, [&](int pid) { return text_of(fmt::format("/proc/{}/cmdline", pid)).find(word) == std::string::npos; });
    return found;
  }

 private:
  const std::string out_, err_;
  int pid_ = -1;
};

class WeirUp : public ::testing::Test {
 protected:
  void SetUp() override {
    if (part("footage/vtest.avi").empty() || part("lib/libtensorflowlite_c.so").empty())
      GTEST_SKIP() << "footage or model could not be fetched";
  }
  // What `weir` answers in another terminal.
  std::string ask(const std::string& command) {
    std::string folder = folder_.path(), out = folder + "/said";
    int code = std::system(fmt::format("{} {} --state-dir {}/state >{} 2>&1", WEIR_BINARY, command, folder, out).c_str());
    EXPECT_EQ(code, 0) << command << text_of(out);
    return text_of(out);
  }
  // The cameras that were said to stream since then, and after how many seconds first.
  std::map<std::string, double> streaming_since(WallTime then) {
    std::map<std::string, double> after;
    std::istringstream lines(ask("events 'stream.status.#' --after 0 --json"));
    for (std::string line; std::getline(lines, line);) {
      auto event = json::parse_text(line);
      if (!event) continue;
      const auto& payload = event->at("payload").as_object();
      auto ts = from_iso(std::string(payload.at("ts").as_string()));
      if (payload.at("state") == "STREAMING" && ts && *ts > then)
        after.emplace(payload.at("camera_uuid").as_string(), seconds(*ts - then));
    }
    return after;
  }
  void expect_streaming_again(size_t cameras, WallTime then, double limit_s, const char* what) {
    std::map<std::string, double> after;
    EXPECT_TRUE(eventually(20s, [&] {
      after = streaming_since(then);
      return after.size() == cameras;
    })) << what;
    for (const auto& [camera, time] : after) {
      std::printf("%s: %s streams again after %.2f s\n", what, camera.c_str(), time);
      EXPECT_LT(time, limit_s) << camera << " after " << what;
    }
  }
  TempDir folder_;
};

TEST_F(WeirUp, Demo_ShowsPeopleBeingDetected_OutlivesKilledWorkersAndManagers_AndStopsCleanly) {
  Up up(folder_, {"--demo", "2"});
  auto sees = [&](const std::string& camera) { return up.out().find(camera + ": saw ") != std::string::npos; };
  ASSERT_TRUE(eventually(60s, [&] { return sees("demo-1") && sees("demo-2"); })) << up.out() << up.err();
  EXPECT_NE(up.out().find("person"), std::string::npos);

  for (const char* killed : {"weir-worker", "--manager"}) {
    std::vector<int> before = up.children_with(killed);
    ASSERT_FALSE(before.empty());
    WallTime then = wall_now();
    signal_all(before, SIGKILL);
    expect_streaming_again(2, then, 5, killed);
    size_t shown = up.out().size();
    EXPECT_TRUE(eventually(15s, [&] {
      return up.out().find("demo-1: saw ", shown) != std::string::npos &&
             up.out().find("demo-2: saw ", shown) != std::string::npos;
    })) << killed << up.out() << up.err();
  }

  auto children = up.children();
  up.signal(SIGINT);
  EXPECT_EQ(up.wait(30s), 0) << up.err();
  for (int pid : children) EXPECT_TRUE(ended(pid)) << "left behind: " << text_of(fmt::format("/proc/{}/cmdline", pid));
}

TEST_F(WeirUp, KilledHard_LeavesNothingBehind_AndStreamsAtOnceWhenStartedAgain) {
  auto up = std::make_unique<Up>(folder_, std::vector<std::string>{"--demo", "1", "--lease-ttl-s", "30"});
  auto streams = [&](size_t from) { return up->out().find("demo-1: STREAMING", from) != std::string::npos; };
  ASSERT_TRUE(eventually(60s, [&] { return streams(0); })) << up->err();
  auto children = up->children();
  ASSERT_GE(children.size(), 4u) << "runner, manager, worker and cameras";
  up->signal(SIGKILL);
  up->wait(5s);
  for (int pid : children)
    EXPECT_TRUE(eventually(15s, [&] { return ended(pid); })) << text_of(fmt::format("/proc/{}/cmdline", pid));
  size_t shown = up->out().size();
  up = std::make_unique<Up>(folder_, std::vector<std::string>{"--demo", "1", "--lease-ttl-s", "30"});
  EXPECT_TRUE(eventually(15s, [&] { return streams(shown); })) << "after a TTL, or never\n" << up->out() << up->err();
}

TEST_F(WeirUp, StoppedAndStartedAgain_KnowsItsCameras_AndStreamsThemAtOnce) {
  Camsim camsim(folder_, std::vector<std::string>(2, "width=384,height=288,fps=10,keyframe_s=1,seconds=10"));
  std::ofstream(folder_.path() + "/cameras.csv") << "camera_uuid,tenant_id,site_id,rtsp_url,name\ngate,t1,s1,"
                                                 << camsim.url("cam-1") << ",Gate\nyard,t1,s1," << camsim.url("cam-2")
                                                 << ",Yard\n";
  auto streams = [](const Up& up, size_t from) {
    return up.out().find("gate: STREAMING", from) != std::string::npos &&
           up.out().find("yard: STREAMING", from) != std::string::npos;
  };
  std::string cameras, events;
  {
    Up up(folder_, {"--cameras", folder_.path() + "/cameras.csv"});
    ASSERT_TRUE(eventually(30s, [&] { return streams(up, 0); })) << up.out() << up.err();
    cameras = ask("camera list --json");
    events = ask("events 'stream.status.#' --after 0 --json");
    up.signal(SIGINT);
    EXPECT_EQ(up.wait(20s), 0) << up.err();
  }
  EXPECT_NE(cameras.find("Gate"), std::string::npos) << cameras;
  fs::remove(folder_.path() + "/cameras.csv");
  size_t shown = text_of(folder_.path() + "/up.out").size();
  WallTime then = wall_now();
  Up up(folder_, {});
  ASSERT_TRUE(eventually(15s, [&] { return streams(up, shown); })) << up.out() << up.err();
  expect_streaming_again(2, then, 5, "a restart");
  EXPECT_EQ(ask("camera list --json"), cameras);
  EXPECT_TRUE(ask("events 'stream.status.#' --after 0 --json").starts_with(events)) << "what was said before is kept";
}

TEST_F(WeirUp, CameraPassword_StandsNowhereThatOthersCanRead) {
  const std::string canary = "C4n4ryP4ss";
  boost::json::array recorders{{{"name", "locked"}, {"user", "viewer"}, {"password", canary},
                                {"cameras", {{{"name", "cam-1"}, {"profile", "fps=10,seconds=10"}}}}}};
  Camsim camsim(folder_, recorders);
  std::string url = camsim.url("cam-1");
  std::string with = "rtsp://viewer:" + canary + "@" + url.substr(7), wrong = "rtsp://viewer:x" + canary + "@" + url.substr(7);
  std::ofstream(folder_.path() + "/cameras.csv")
      << "camera_uuid,tenant_id,site_id,rtsp_url\ngood,t1,s1," << with << "\nbad,t1,s1," << wrong
      << "\ngone,t1,s1,rtsp://viewer:" << canary << "@127.0.0.1:1/x\n";
  fs::permissions(folder_.path() + "/cameras.csv", fs::perms::owner_read);
  Up up(folder_, {"--cameras", folder_.path() + "/cameras.csv"});
  auto shown = [&](const char* text) { return up.out().find(text) != std::string::npos; };
  ASSERT_TRUE(eventually(60s, [&] { return shown("good: STREAMING") && up.err().find("RTSP_AUTH_FAILED") != std::string::npos; }))
      << up.out() << up.err();
  ASSERT_TRUE(eventually(30s, [&] { return shown("good: saw") && up.err().find("TCP_REFUSED") != std::string::npos; }));

  std::vector<int> processes = up.children();
  processes.push_back(up.pid());
  for (int pid : processes)
    for (const char* file : {"cmdline", "environ"})
      EXPECT_EQ(text_of(fmt::format("/proc/{}/{}", pid, file)).find(canary), std::string::npos) << pid << " " << file;
  EXPECT_EQ(up.out().find(canary), std::string::npos);
  EXPECT_EQ(up.err().find(canary), std::string::npos) << "in the log";
  std::string events = ask("events --after 0 --json");
  EXPECT_NE(events.find("RTSP_AUTH_FAILED"), std::string::npos) << events.substr(0, 2000);
  EXPECT_EQ(events.find(canary), std::string::npos) << "in an event";
  EXPECT_EQ(ask("status").find(canary), std::string::npos);
  // Metrics of the workers, where Prometheus finds them; one of them stands by without a camera.
  std::string log = up.err(), metrics;
  for (size_t at = log.find("\"event\":\"worker.started\""); at != std::string::npos; at = log.find("\"event\":\"worker.started\"", at + 1)) {
    size_t address = log.find("127.0.0.1:", at);
    metrics += get_from("http://" + log.substr(address, log.find('"', address) - address), "/metrics").text;
  }
  EXPECT_NE(metrics.find("stream_up"), std::string::npos);
  EXPECT_EQ(metrics.find(canary), std::string::npos);
}

TEST_F(WeirUp, CameraTest_TellsWhatItFound) {
  Camsim camsim(folder_, std::vector<std::string>{"fps=10,keyframe_s=1,seconds=10"});
  std::string out = folder_.path() + "/diagnosis";
  int code = std::system(fmt::format("{} camera test {} --snapshot {}/s.jpg >{} 2>&1", WEIR_BINARY, camsim.url("cam-1"),
                                     folder_.path(), out).c_str());
  EXPECT_EQ(code, 0) << text_of(out);
  for (const char* word : {"h264", "768", "576"}) EXPECT_NE(text_of(out).find(word), std::string::npos) << text_of(out);
  EXPECT_EQ(text_of(folder_.path() + "/s.jpg").substr(0, 3), "\xFF\xD8\xFF");
  camsim.fault("cam-1", {{"kind", "unauthorized"}});
  code = std::system(fmt::format("{} camera test {} >{} 2>&1", WEIR_BINARY, camsim.url("cam-1"), out).c_str());
  EXPECT_EQ(WEXITSTATUS(code), 1);
  EXPECT_NE(text_of(out).find("RTSP_AUTH_FAILED"), std::string::npos) << text_of(out);
}

}  // namespace
}  // namespace weir::test
