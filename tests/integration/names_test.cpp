// A resolver that does not answer delays nothing: no start, no end, no command of a person at a terminal.
#include "fleet.hpp"
#include "stall.hpp"
#include "where.hpp"

#include "weir/base/clock.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace weir::test {
namespace {

const std::string kNowhere = "http://plane.weir.test:1";

// The program as it runs where such names are looked up for ever.
std::string with_slow_names(const std::string& folder) {
  std::string path = folder + "/weir", slow = folder + "/slow_names.so";  // a blank would end the library's name
  std::filesystem::copy_file(WEIR_SLOW_NAMES, slow);
  std::ofstream(path) << "#!/bin/sh\nLD_PRELOAD=" + slow + " exec '" WEIR_BINARY "' \"$@\"\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

TEST(Names, ThatNobodyResolves_HoldUpNeitherARunnersStartNorItsEnd_WhereAnotherAddressAnswers) {
  TempDir folder;
  WeirProcess plane(folder.path(), "sqlite:" + folder.path() + "/weir.db");
  plane.furnish(1);
  Runner runner(with_slow_names(folder.path()), "r1", folder.path() + "/r1",
                {"--control-plane-url", kNowhere + "," + plane.url(), "--auth-secret-file", plane.folder() + "/auth.secret",
                 "--prom-manager-port", "0", "--prom-worker-port", "0"});
  auto worker_up = [&] { return runner.has_worker_up() && !runner.workers().empty(); };
  ASSERT_TRUE(eventually(20s, worker_up)) << runner.log();
  runner.kill_everything();
  Instant begun = boot_now();
  runner.start();
  EXPECT_LT(boot_now() - begun, 10s) << "to be heard of again, its last will included";
  EXPECT_TRUE(runner.logged("the last will was carried out")) << runner.log();
  ASSERT_TRUE(eventually(20s, worker_up)) << runner.log();
  signal_all({runner.parent()}, SIGTERM);
  EXPECT_EQ(runner.wait(20s), 0) << runner.log();
}

TEST(Names, ThatNobodyResolves_HoldUpNoOneWhoPressesCtrlC) {
  TempDir folder;
  std::string program = with_slow_names(folder.path());
  int pid = ::fork();
  if (pid == 0) {
    ::setenv("WEIR_TOKEN", "t", 1);
    ::dup2(::open("/dev/null", O_RDWR), 1);
    ::execl(program.c_str(), program.c_str(), "events", "--follow", "--url", kNowhere.c_str(), nullptr);
    ::_exit(127);
  }
  // The resolver's thread is there, so the process is looking the name up.
  auto threads = fmt::format("/proc/{}/task", pid);
  ASSERT_TRUE(eventually(10s, [&] {
    std::error_code gone;
    return std::distance(std::filesystem::directory_iterator(threads, gone), {}) > 1;
  }));
  ::kill(pid, SIGINT);
  int status = -1;
  EXPECT_TRUE(eventually(5s, [&] { return ::waitpid(pid, &status, WNOHANG) == pid; }));
  if (status == -1) ::kill(pid, SIGKILL), ::waitpid(pid, &status, 0);
}

}  // namespace
}  // namespace weir::test
