// What the tests' own PostgreSQL promises to the machine that they run on.
#include "postgres_server.hpp"

#include "stall.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

namespace weir::test {

TEST(PostgresServer, EndsWithItsTest_HoweverThatEnds) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  pid_t test = ::fork();
  ASSERT_GE(test, 0);
  if (test == 0) {
    auto made = PostgresServer::start();
    int pid = made ? (*made)->pid() : made.error().reason == "no_postgres" ? -1 : 0;
    if (::write(ends[1], &pid, sizeof pid) == sizeof pid) ::raise(SIGKILL);
    ::_exit(1);
  }
  ::close(ends[1]);
  int server = 0;
  EXPECT_EQ(::read(ends[0], &server, sizeof server), static_cast<ssize_t>(sizeof server));
  ::close(ends[0]);
  ::waitpid(test, nullptr, 0);
  if (server < 0) GTEST_SKIP() << "PostgreSQL's server is not installed";
  ASSERT_GT(server, 0) << "it did not start";
  // A process that has ended and was not reaped counts as gone, too.
  EXPECT_TRUE(eventually(20s, [&] {
    std::string pid, name, state;
    std::ifstream(fmt::format("/proc/{}/stat", server)) >> pid >> name >> state;
    return state.empty() || state == "Z";
  })) << "process " << server << " runs on";
}

}  // namespace weir::test
