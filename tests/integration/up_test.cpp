// `weir up --demo`: a stranger's first minute. And no password of a camera anywhere that others can read.
#include "fleet.hpp"
#include "shard.hpp"
#include "stall.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/json.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

namespace weir::test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// Where a `weir up` is started otherwise than the others: its program, and descriptors instead of files.
struct Place {
  std::string program = WEIR_BINARY;
  int out = -1, err = -1;
};

// A `weir up` in the background, with what it prints in a file.
class Up {
 public:
  Up(const TempDir& folder, std::vector<std::string> more, const Place& place = {})
      : out_(folder.path() + "/up.out"), err_(folder.path() + "/up.err") {
    std::vector<std::string> words{place.program, "up", "--state-dir", folder.path() + "/state",
                                   "--listen", "127.0.0.1:0", "--models-dir", part("models"), "--library-dir", part("lib"),
                                   "--footage", part("footage/vtest.avi"), "--log-level", "debug"};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      for (const char* port : {"PROM_WORKER_PORT", "PROM_MANAGER_PORT"}) ::setenv(port, "0", 1);
      ::dup2(place.out >= 0 ? place.out : ::open(out_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), 1);
      ::dup2(place.err >= 0 ? place.err : ::open(err_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), 2);
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

class WeirUpProcess : public ::testing::Test {
 protected:
  // What `weir` answers in another terminal.
  std::string ask(const std::string& command) {
    std::string folder = folder_.path(), out = folder + "/said";
    std::string line = fmt::format("timeout 10 '{}' {} --state-dir {}/state >{} 2>&1", WEIR_BINARY, command, folder, out);
    int code = std::system(line.c_str());
    EXPECT_EQ(code, 0) << command << text_of(out);
    return text_of(out);
  }
  std::string url() const {
    std::string text = text_of(folder_.path() + "/state/endpoint");
    return text.substr(0, text.find('\n'));
  }
  bool ready() const { return get_from(url(), "/readyz").status == 200; }
  // How often the runner was heard.
  std::ptrdiff_t heartbeats() {
    std::string heard = ask("events 'runner.heartbeat.#' --after 0 --json");
    return std::ranges::count(heard, '\n');
  }
  // Commands are answered and the runner is heard for as long as the screen needs to be drawn several times.
  bool answers_on() {
    std::ptrdiff_t before = heartbeats();
    return eventually(20s, [&] { return !HasFailure() && ready() && heartbeats() >= before + 3; });
  }
  void furnish() {
    ask("tenant add t1");
    ask("site add s1 --tenant t1");
  }
  // A camera that nobody can reach: its state changes, and that is shown.
  void add_camera(const std::string& id) {
    ask(fmt::format("camera add --tenant t1 --site s1 --id {} rtsp://127.0.0.1:1/x", id));
  }
  TempDir folder_;
};

class WeirUp : public WeirUpProcess {
 protected:
  void SetUp() override {
    if (part("footage/vtest.avi").empty() || part("lib/libtensorflowlite_c.so").empty())
      GTEST_SKIP() << "footage or model could not be fetched";
  }
  // The cameras that were said to stream, or that saw something, since then, and after how many seconds first.
  std::map<std::string, double> heard_since(WallTime then, const std::string& pattern = "stream.status.#") {
    std::map<std::string, double> after;
    std::istringstream lines(ask(fmt::format("events '{}' --after 0 --json", pattern)));
    for (std::string line; std::getline(lines, line);) {
      auto event = json::parse_text(line);
      if (!event) continue;
      const auto& payload = event->at("payload").as_object();
      auto ts = from_iso(std::string(payload.at("ts").as_string()));
      bool good = !payload.contains("state") || payload.at("state") == "STREAMING";
      if (good && ts && *ts > then)
        after.emplace(payload.at("camera_uuid").as_string(), seconds(*ts - then));
    }
    return after;
  }
  void expect_streaming_again(size_t cameras, WallTime then, double limit_s, const char* what) {
    std::map<std::string, double> after;
    EXPECT_TRUE(eventually(20s, [&] {
      after = heard_since(then);
      return after.size() == cameras;
    })) << what;
    for (const auto& [camera, time] : after) {
      std::printf("%s: %s streams again after %.2f s\n", what, camera.c_str(), time);
      EXPECT_LT(time, limit_s) << camera << " after " << what;
    }
  }
};

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

// A pipe whose reader reads when it is told to. The writer's end blocks, as one that a shell made does.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0); }
  ~Pipe() {
    for (int end : ends_) ::close(end);
  }
  Pipe(const Pipe&) = delete;
  int writer() const { return ends_[1]; }
  // Through a description of its own: the writer must not learn from this one not to block.
  void fill() {
    Descriptor own(::open(fmt::format("/proc/self/fd/{}", ends_[1]).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    for (const std::string& block : {std::string(4096, '\n'), std::string("\n")})
      while (::write(own.get(), block.data(), block.size()) > 0) {}
  }
  const std::string& read_all() {
    Descriptor own(::open(fmt::format("/proc/self/fd/{}", ends_[0]).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    char buffer[65536];
    for (ssize_t got = 0; (got = ::read(own.get(), buffer, sizeof buffer)) > 0;)
      read_.append(buffer, static_cast<size_t>(got));
    return read_;
  }
  bool reads(const std::string& text) { return read_all().find(text) != std::string::npos; }

 private:
  int ends_[2] = {-1, -1};
  std::string read_;
};

// A terminal of which the test is the keyboard and the screen.
class Terminal {
 public:
  Terminal()
      : keyboard_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)),
        program_(open_program(keyboard_.get())) {}
  int program() const { return program_.get(); }
  void type(char key) { EXPECT_EQ(::write(keyboard_.get(), &key, 1), 1); }
  void stop() {
    type('\x13');  // Ctrl-S
    EXPECT_TRUE(eventually(10s, [&] { return !takes_more(); }));
  }
  bool takes_more() const {
    pollfd asked{.fd = program_.get(), .events = POLLOUT, .revents = 0};
    return ::poll(&asked, 1, 0) == 1;
  }
  bool shows(const std::string& text) { return read_all().find(text) != std::string::npos; }
  const std::string& read_all() {
    char buffer[65536];
    for (ssize_t got = 0; (got = ::read(keyboard_.get(), buffer, sizeof buffer)) > 0;)
      shown_.append(buffer, static_cast<size_t>(got));
    return shown_;
  }
  bool shows_match(const std::regex& pattern) { return std::regex_search(read_all(), pattern); }

 private:
  static int open_program(int keyboard) {
    char name[64] = {};
    EXPECT_TRUE(::grantpt(keyboard) == 0 && ::unlockpt(keyboard) == 0 && ::ptsname_r(keyboard, name, sizeof name) == 0);
    return ::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
  }
  const Descriptor keyboard_, program_;
  std::string shown_;
};

TEST_F(WeirUpProcess, AStalledReaderOfItsOutput_StopsNothing_AndIsToldWhatItMissed) {
  Pipe out, err;
  Up up(folder_, {}, {.out = out.writer(), .err = err.writer()});
  ASSERT_TRUE(eventually(20s, [&] { return out.reads("listening on ") && ready() && heartbeats() > 0; }))
      << err.read_all();
  furnish();
  out.fill();
  err.fill();
  add_camera("cam-1");  // a line on stdout
  up.signal(SIGHUP);    // and one in the log
  auto tried = [&] { return ask("events 'stream.#' --after 0").find("cam-1") != std::string::npos; };
  EXPECT_TRUE(eventually(20s, [&] { return HasFailure() || tried(); }));
  ASSERT_TRUE(answers_on()) << "it waits for the reader of its output";
  EXPECT_NE(ask("camera list").find("cam-1"), std::string::npos);
  out.read_all();
  err.read_all();
  add_camera("cam-2");
  up.signal(SIGHUP);
  EXPECT_TRUE(eventually(20s, [&] { return out.reads("cam-2: ") && err.reads("settings.reloaded"); }));
  EXPECT_TRUE(out.reads("weir: nobody read this output; lines dropped: ")) << out.read_all();
  EXPECT_TRUE(err.reads("\"log.dropped\"")) << err.read_all();
}

TEST_F(WeirUpProcess, ATerminalStoppedByCtrlS_StopsNothing_AndShowsTheTableWhenItGoesOn) {
  Terminal terminal;
  Up up(folder_, {}, {.out = terminal.program(), .err = terminal.program()});
  ASSERT_TRUE(eventually(20s, [&] { return terminal.shows("No cameras yet") && ready() && heartbeats() > 0; }));
  furnish();
  terminal.stop();
  ASSERT_TRUE(answers_on()) << "it waits for its terminal";
  add_camera("yard-7");
  EXPECT_FALSE(terminal.shows("yard-7"));
  terminal.type('\x11');  // Ctrl-Q
  EXPECT_TRUE(eventually(20s, [&] { return terminal.shows("yard-7"); }));
  terminal.stop();
  up.signal(SIGTERM);
  EXPECT_EQ(up.wait(20s), 0) << "a stopped terminal must not keep it from ending";
}

TEST_F(WeirUpProcess, WhatDies_IsSaidAboveTheTable_WithWhatFollows) {
  Terminal terminal;
  Up up(folder_, {}, {.out = terminal.program(), .err = terminal.program()});
  std::vector<int> workers;
  ASSERT_TRUE(eventually(20s, [&] {
    return terminal.shows("No cameras yet") && ready() && !(workers = up.children_with("shard")).empty();
  }));
  ::kill(workers.front(), SIGKILL);
  EXPECT_TRUE(eventually(20s, [&] { return terminal.shows("worker.crashed: exit code 137; another worker takes over"); }));
  ::kill(up.children_with("--manager").front(), SIGKILL);
  EXPECT_TRUE(eventually(20s, [&] { return terminal.shows("the runner ended with exit code 1: another one is started"); }));
}

TEST_F(WeirUpProcess, WhoseTerminalIsClosed_EndsCleanly_ButReadsItsSettingsAgainWhileItIsOpen) {
  auto terminal = std::make_unique<Terminal>();
  Up up(folder_, {}, {.out = terminal->program(), .err = terminal->program()});
  ASSERT_TRUE(eventually(20s, [&] { return terminal->shows("No cameras yet") && ready() && heartbeats() > 0; }));
  up.signal(SIGHUP);
  EXPECT_TRUE(answers_on());
  terminal.reset();
  up.signal(SIGHUP);  // the kernel sends it to whatever ran in there
  EXPECT_EQ(up.wait(20s), 0);
}

TEST_F(WeirUpProcess, ARunnerThatCannotStart_IsShownWithItsExitCode_AndWhereTheLogIs) {
  std::string state = folder_.path() + "/state";
  fs::create_directory(state);
  std::ofstream(state + "/runner") << "where it wants a folder\n";
  Terminal terminal;
  Up up(folder_, {}, {.out = terminal.program(), .err = terminal.program()});
  EXPECT_TRUE(eventually(20s, [&] {
    return terminal.shows(": the runner ended with exit code 1") && terminal.shows("It is started again in ") &&
           terminal.shows("; the log says why: " + state.substr(0, 20));
  }));
  up.signal(SIGTERM);
  EXPECT_EQ(up.wait(20s), 0);
}

TEST_F(WeirUpProcess, EverySettingInAFile_IsNoObstacleToItsRunner) {
  Up up(folder_, {"--config", WEIR_SOURCE_DIR "/deploy/weir.sample.yaml"});
  EXPECT_TRUE(eventually(20s, [&] { return !url().empty() && ready(); })) << up.err();
  EXPECT_TRUE(answers_on()) << up.err();
  up.signal(SIGTERM);
  EXPECT_EQ(up.wait(20s), 0);
  EXPECT_EQ(up.err().find("runner.restarting"), std::string::npos) << up.err();
}

TEST_F(WeirUpProcess, AShellThatIsSetUpForAnotherRunner_DoesNotMisleadItsOwn) {
  const std::vector<std::string> names = {"API_KEY", "RUNNER_SITE", "RUNNER_TENANT"};
  for (const std::string& name : names) ::setenv(name.c_str(), "of-another-place", 1);
  Up up(folder_, {});
  for (const std::string& name : names) ::unsetenv(name.c_str());
  ASSERT_TRUE(eventually(20s, [&] { return !url().empty() && ready() && heartbeats() > 0; })) << up.err();
  std::vector<int> managers = up.children_with("--manager");
  ASSERT_EQ(managers.size(), 1u);
  std::string environment = '\0' + text_of(fmt::format("/proc/{}/environ", managers.front()));
  for (const std::string& name : names) EXPECT_EQ(environment.find('\0' + name + '='), std::string::npos) << name;
}

TEST_F(WeirUpProcess, AnImportWhoseReaderHasLeft_IsCompleted_AndSaysThatItsReportWasLost) {
  Up up(folder_, {});
  ASSERT_TRUE(eventually(20s, [&] { return !url().empty() && ready(); })) << up.err();
  std::string state = folder_.path() + "/state", file = folder_.path() + "/cameras.csv", err = folder_.path() + "/err";
  std::ofstream(file) << "camera_uuid,tenant_id,site_id,rtsp_url\nc1,t1,s1,rtsp://127.0.0.1:1/x\n"
                      << "c2,t1,s1,rtsp://127.0.0.1:1/x\nc3,t1,s1,rtsp://127.0.0.1:1/x\n";
  int importing = ::fork();
  if (importing == 0) {
    int ends[2];
    std::signal(SIGPIPE, SIG_DFL);
    if (::pipe(ends) != 0 || ::dup2(ends[1], 1) < 0 || ::close(ends[0]) != 0) ::_exit(126);
    ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), 2);
    ::execl(WEIR_BINARY, WEIR_BINARY, "camera", "import", file.c_str(), "--create", "--state-dir", state.c_str(),
            nullptr);
    ::_exit(127);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(importing, &status, 0), importing);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  EXPECT_EQ(text_of(err), "weir: cannot write to standard output: Broken pipe\n");
  std::string cameras = ask("camera list");
  for (const char* camera : {"c1 ", "c2 ", "c3 "}) EXPECT_NE(cameras.find(camera), std::string::npos) << cameras;
}

TEST_F(WeirUpProcess, SimulatedCamerasOfAnEarlierOne_AreRemoved_AndNoOthers) {
  auto up = std::make_unique<Up>(folder_, std::vector<std::string>());
  ASSERT_TRUE(eventually(20s, [&] { return !url().empty() && ready(); })) << up->err();
  ask("tenant add demo");
  ask("site add demo --tenant demo");
  for (const char* camera : {"--id demo-1 --name 'Simulated camera cam-1'", "--id demo-yard --name Yard", "--id gate"})
    ask(fmt::format("camera add --tenant demo --site demo {} rtsp://127.0.0.1:1/x", camera));
  up->signal(SIGKILL);  // as one with --demo, it takes nothing back
  up->wait(5s);
  fs::remove(folder_.path() + "/state/endpoint");
  up = std::make_unique<Up>(folder_, std::vector<std::string>());
  ASSERT_TRUE(eventually(20s, [&] { return !url().empty() && ready(); })) << up->err();
  std::string cameras;
  auto removed = [&] { return (cameras = ask("camera list")).find("demo-1 ") == std::string::npos; };
  EXPECT_TRUE(eventually(20s, removed)) << cameras;
  for (const char* camera : {"demo-yard ", "gate "}) EXPECT_NE(cameras.find(camera), std::string::npos) << cameras;
  EXPECT_TRUE(eventually(20s, [&] {
    return ask("events 'camera.#' --after 0").find("camera.deleted.demo.demo.demo-1") != std::string::npos;
  }));
}

TEST_F(WeirUpProcess, ReplacedByAnUpgrade_ItStartsItsRunnerAgain_FromTheNewProgram) {
  std::string bin = folder_.path() + "/bin", program = bin + "/weir";
  fs::create_directory(bin);
  fs::copy_file(WEIR_BINARY, program);
  fs::copy_file(WEIR_WORKER, bin + "/weir-worker");
  Up up(folder_, {}, {.program = program});
  std::vector<int> managers;
  ASSERT_TRUE(eventually(20s, [&] { return !(managers = up.children_with("--manager")).empty(); })) << up.err();
  auto kill_runner = [&] {
    auto runners = up.children_with("--runner-id");
    std::erase_if(runners, [&](int pid) { return pid == managers.front(); });
    ASSERT_EQ(runners.size(), 1u) << "the parent of the manager";
    ::kill(runners.front(), SIGKILL);
    ASSERT_TRUE(eventually(20s, [&] {
      auto now = up.children_with("--manager");
      bool another = !now.empty() && now != managers;
      if (another) managers = now;
      return another;
    })) << up.err();
  };
  auto manager_program = [&] { return fs::read_symlink(fmt::format("/proc/{}/exe", managers.front())).string(); };
  fs::copy_file(WEIR_BINARY, bin + "/weir.new");
  fs::rename(bin + "/weir.new", program);
  ASSERT_NO_FATAL_FAILURE(kill_runner());
  EXPECT_EQ(manager_program(), program);
  fs::remove(program);
  ASSERT_NO_FATAL_FAILURE(kill_runner());
  EXPECT_EQ(manager_program(), program + " (deleted)") << "without any file, from the one that runs";
}

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
    EXPECT_TRUE(eventually(15s, [&] { return heard_since(then, "detections.#").size() == 2; }))
        << killed << up.out() << up.err();
  }

  auto children = up.children();
  up.signal(SIGINT);
  EXPECT_EQ(up.wait(30s), 0) << up.err();
  for (int pid : children) EXPECT_TRUE(ended(pid)) << "left behind: " << text_of(fmt::format("/proc/{}/cmdline", pid));
}

// The README's first command, in a terminal.
TEST_F(WeirUp, DevUp_ShowsATableOfCamerasThatSeePeople_AndLetsThemGoOnCtrlC) {
  Terminal terminal;
  Up up(folder_, {"--demo", "1"}, {.program = WEIR_SOURCE_DIR "/dev", .out = terminal.program(), .err = terminal.program()});
  const std::regex row("demo-1 +STREAMING +[1-9][0-9.]* [^\n]*person [01]\\.[0-9]");
  ASSERT_TRUE(eventually(90s, [&] { return terminal.shows_match(row); })) << terminal.read_all();
  auto children = up.children();
  up.signal(SIGINT);
  EXPECT_EQ(up.wait(30s), 0) << terminal.read_all();
  EXPECT_TRUE(terminal.shows("stopping: cameras are let go; Ctrl-C again ends at once"));
  for (int pid : children) EXPECT_TRUE(ended(pid)) << "left behind: " << text_of(fmt::format("/proc/{}/cmdline", pid));
  // What the next start finds: the camera was given back, not left to run out.
  Up again(folder_, {});
  ASSERT_TRUE(eventually(20s, [&] { return !url().empty() && ready(); })) << again.err();
  EXPECT_NE(ask("events 'lease.released.#' --after 0 --json").find("demo-1"), std::string::npos);
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
  int code = std::system(fmt::format("'{}' camera test {} --snapshot {}/s.jpg >{} 2>&1", WEIR_BINARY, camsim.url("cam-1"),
                                     folder_.path(), out).c_str());
  EXPECT_EQ(code, 0) << text_of(out);
  for (const char* word : {"h264", "768", "576"}) EXPECT_NE(text_of(out).find(word), std::string::npos) << text_of(out);
  EXPECT_EQ(text_of(folder_.path() + "/s.jpg").substr(0, 3), "\xFF\xD8\xFF");
  camsim.fault("cam-1", {{"kind", "unauthorized"}});
  code = std::system(fmt::format("'{}' camera test {} >{} 2>&1", WEIR_BINARY, camsim.url("cam-1"), out).c_str());
  EXPECT_EQ(WEXITSTATUS(code), 1);
  EXPECT_NE(text_of(out).find("RTSP_AUTH_FAILED"), std::string::npos) << text_of(out);
}

}  // namespace
}  // namespace weir::test
