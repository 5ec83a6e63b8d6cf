// KeeperRig: what tests of kept processes share: a state folder, a host on it as each new process would make one, and
// programs below the real weir-keeper, of which none is left after the test. Test thread only.
#pragma once

#include "run.hpp"
#include "stall.hpp"
#include "temp_files.hpp"
#include "where.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/json.hpp"
#include "weir/posix/keeper_host.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <iterator>
#include <limits>

namespace weir::test {

using posix::KeeperHost;
using posix::KeeperSettings;

// One end for opening and for keeping.
inline Term for_all(Instant until) { return {until, until}; }

inline int connected(const std::string& path) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  path.copy(at.sun_path, sizeof at.sun_path - 1);
  int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at), 0) << path;
  return fd;
}

inline std::string say(int fd, const std::string& line) {
  std::string text = line + "\n", answer;
  EXPECT_EQ(::send(fd, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  for (char c = 0; ::recv(fd, &c, 1, 0) == 1 && c != '\n';) answer += c;
  return answer;
}

// Gone, or only waiting to be reaped.
inline bool dead(int pid) {
  std::string stat = text_in_file(fmt::format("/proc/{}/stat", pid));
  return stat.empty() || stat.find(") Z ") != std::string::npos;
}

class KeeperRig : public ::testing::Test {
 protected:
  ~KeeperRig() override {
    for (auto& each : host()->adopt()) {
      each->kill();
      run(io_, each->wait());
    }
  }
  KeeperSettings settings() const {
    return {.folder = folder_.path() + "/kept", .boot = BootId::trusted(boot_), .keeper = WEIR_KEEPER,
            .stop_grace = stop_grace_, .backstop = backstop_, .sync_records = sync_records_};
  }
  // As a process makes it that starts now.
  std::unique_ptr<KeeperHost> host() {
    auto made = KeeperHost::create(io_, settings());
    EXPECT_TRUE(made) << made.error().message;
    return *std::move(made);
  }
  KeptSpec spec(const std::string& script, Duration valid_for = 600s) const {
    return {.name = "demo.worker", .command = {"/bin/sh", "-c", script}, .output = output(),
            .note = R"({"run_id":"r1"})", .version = 7, .valid_until = boot_now() + valid_for};
  }
  std::unique_ptr<Kept> start(const KeptSpec& what) {
    auto kept = try_start(what);
    EXPECT_TRUE(kept) << kept.error().message;
    return kept ? *std::move(kept) : nullptr;
  }
  Result<std::unique_ptr<Kept>> try_start(const KeptSpec& what) {
    auto its = host();
    return run(io_, its->start(what));
  }
  std::unique_ptr<Kept> adopt_one() {
    auto found = host()->adopt();
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? nullptr : std::move(found.front());
  }
  // Runs `work` in a process of its own, calls `meanwhile`, and kills that process with whatever it holds.
  static void in_a_process_that_is_killed(const std::function<bool(boost::asio::io_context&)>& work,
                                          const std::function<void()>& meanwhile = [] {}) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    pid_t starter = ::fork();
    if (starter == 0) {
      boost::asio::io_context own;
      char done = work(own) ? 'y' : 'n';
      for (bool told = ::write(pipe[1], &done, 1) == 1; told;) ::pause();
      ::_exit(1);
    }
    char done = 0;
    EXPECT_EQ(::read(pipe[0], &done, 1), 1);
    EXPECT_EQ(done, 'y');
    meanwhile();
    ::kill(starter, SIGKILL);
    ::waitpid(starter, nullptr, 0);
    for (int end : pipe) ::close(end);
  }
  void start_and_be_killed(const KeptSpec& what) {
    in_a_process_that_is_killed([&](boost::asio::io_context& own) {
      auto its = KeeperHost::create(own, settings());
      return its && run(own, (*its)->start(what));
    });
  }
  std::optional<int> wait(const std::unique_ptr<Kept>& kept) { return run(io_, kept->wait()); }
  std::string output() const { return folder_.path() + "/output"; }
  std::string said() const { return text_in_file(output()); }
  // The numbers that the script has said, once there are `count`.
  std::vector<int> pids(size_t count) const {
    std::vector<int> all;
    EXPECT_TRUE(eventually(20s, [&] {
      std::istringstream text(said());
      all.assign(std::istream_iterator<int>(text), {});
      return all.size() >= count && said().ends_with('\n');
    })) << said();
    all.resize(count, std::numeric_limits<int>::max());  // nobody has that number
    return all;
  }
  json::object record(const std::string& name = "demo.worker") const {
    auto read = json::parse_text(text_in_file(fmt::format("{}/kept/{}.record", folder_.path(), name)));
    return read && read->is_object() ? read->get_object() : json::object();
  }
  int keeper_pid(const std::string& name = "demo.worker") const {
    return static_cast<int>(record(name).at("keeper").at("pid").as_int64());
  }
  std::string socket_path() const {
    return fmt::format("{}/kept/{}.sock", folder_.path(), std::string(record().at("nonce").as_string()));
  }
  size_t files() const {
    namespace fs = std::filesystem;
    fs::directory_iterator first(folder_.path() + "/kept"), end;
    return static_cast<size_t>(std::distance(first, end));
  }

  std::string boot_ = "boot-1";
  Duration stop_grace_ = 60s, backstop_ = 35s;
  bool sync_records_ = true;
  boost::asio::io_context io_;
  TempDir folder_;
};

}  // namespace weir::test
