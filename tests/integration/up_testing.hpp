// A `weir up` in the background, and what a person at its terminal sees of it. Main thread only.
#pragma once

#include "fleet.hpp"
#include "shard.hpp"
#include "stall.hpp"
#include "where.hpp"

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

namespace fs = std::filesystem;

inline std::string text_of(const std::string& path) {
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
class UpProcess {
 public:
  UpProcess(const TempDir& folder, std::vector<std::string> more, const Place& place = {})
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
  ~UpProcess() {
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

}  // namespace weir::test
