#include "weir/posix/household.hpp"

#include <gtest/gtest.h>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

namespace weir::posix {
namespace {

// Runs `work` in a process of its own, which has none of the children that this program has started for other tests.
int in_a_process(const std::function<int()>& work) {
  pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    ::_exit(work());
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

pid_t fork_a_sleeper() {
  pid_t pid = ::fork();
  if (pid == 0)
    for (;;) ::pause();
  return pid;
}

TEST(PosixHousehold, EndsChildrenAndOrphans) {
  EXPECT_EQ(in_a_process([] {
              PosixHousehold household;
              int pipe[2];
              if (::pipe(pipe) != 0) return 1;
              fork_a_sleeper();
              // A manager that dies with a worker: the worker holds the pipe's end and is an orphan at once.
              if (pid_t manager = ::fork(); manager == 0) {
                fork_a_sleeper();
                ::_exit(0);
              }
              ::close(pipe[1]);
              if (!household.end_all()) return 2;
              char none = 0;
              return ::read(pipe[0], &none, 1) == 0 ? 0 : 3;  // nobody is left who holds the other end
            }),
            0);
}

TEST(PosixHousehold, LeavesThoseAloneThatWereThereBefore) {
  EXPECT_EQ(in_a_process([] {
              pid_t before = fork_a_sleeper();
              PosixHousehold household;
              pid_t own = fork_a_sleeper();
              if (!household.end_all()) return 1;
              if (::kill(own, 0) == 0) return 2;
              bool there = ::kill(before, 0) == 0;
              ::kill(before, SIGKILL);
              return there ? 0 : 3;
            }),
            0);
}

TEST(PosixHousehold, WithNobodyBelow_IsDoneAtOnce) {
  EXPECT_EQ(in_a_process([] { return PosixHousehold().end_all() ? 0 : 1; }), 0);
}

}  // namespace
}  // namespace weir::posix
