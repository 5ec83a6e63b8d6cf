#include "weir/posix/child_process.hpp"
#include "weir/posix/machine.hpp"

#include "run.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <vector>

namespace weir::posix {
namespace {

class PosixHostTest : public ::testing::Test {
 protected:
  boost::asio::io_context io;
  PosixHost host{io};
  std::unique_ptr<Child> shell(const std::string& script, Secret document = {}) {
    auto child = host.start({.path = "/bin/sh", .arguments = {"-c", script}, .document = std::move(document)});
    EXPECT_TRUE(child);
    return *std::move(child);
  }
};

TEST_F(PosixHostTest, LinesAndExitCode_AreHeard) {
  auto child = shell("echo one; echo two; exit 7");
  EXPECT_EQ(*test::run(io, child->read_line()), "one");
  EXPECT_EQ(*test::run(io, child->read_line()), "two");
  EXPECT_FALSE(test::run(io, child->read_line()));
  EXPECT_EQ(test::run(io, child->wait()), 7);
  EXPECT_FALSE(child->running());
}

TEST_F(PosixHostTest, Document_IsReadFromADescriptorAndStandsNowhereElse) {
  auto child = shell("cat /dev/fd/3; echo; cat /proc/$$/cmdline /proc/$$/environ | tr '\\0' ' '; echo", Secret("s3cret-d0c"));
  EXPECT_EQ(*test::run(io, child->read_line()), "s3cret-d0c");
  EXPECT_EQ(test::run(io, child->read_line())->find("s3cret-d0c"), std::string::npos);
}

TEST_F(PosixHostTest, WhatIsNotItsBusiness_IsNotInItsEnvironment) {
  ::setenv("WEIR_TEST_KEY", "wk_secret", 1);
  ::setenv("WEIR_TEST_KEY_2", "kept", 1);
  auto child = host.start({.path = "/bin/sh", .arguments = {"-c", "echo \"$WEIR_TEST_KEY,$WEIR_TEST_KEY_2\""},
                           .unset = {"WEIR_TEST_KEY"}});
  ASSERT_TRUE(child);
  EXPECT_EQ(*test::run(io, (*child)->read_line()), ",kept");
}

TEST_F(PosixHostTest, WhereNoDescriptorIsLeftToWatchIt_ItIsNotStarted) {
  // Four are for its pipes, and the fifth is missing.
  std::vector<int> free;
  for (int i = 0; i < 5; ++i) free.push_back(::dup(0));
  for (int fd : free) ::close(fd);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few{.rlim_cur = static_cast<rlim_t>(free.back()), .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  auto child = host.start({.path = "/bin/sh", .arguments = {"-c", "exec sleep 60"}});
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_FALSE(child);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "nobody is left behind";
}

TEST_F(PosixHostTest, ASignalThatEndedIt_IsItsCode) {
  auto child = shell("exec sleep 60");
  child->signal(SIGKILL);
  EXPECT_EQ(test::run(io, child->wait()), 128 + SIGKILL);
}

TEST_F(PosixHostTest, ItsInputEnds_WhenItsParentLetsGo) {
  int pid = 0;
  {
    auto child = shell("read line; exit 0");
    pid = child->pid();
    EXPECT_TRUE(child->running());
  }
  EXPECT_NE(::kill(pid, 0), 0) << "killed and reaped with its handle";
}

TEST_F(PosixHostTest, AProgramThatIsNotThere_IsAnErrorThatNamesIt) {
  auto child = host.start({.path = "/nowhere/weir-worker"});
  ASSERT_FALSE(child);
  EXPECT_NE(child.error().message.find("/nowhere/weir-worker"), std::string::npos);
}

TEST(Machine, ABusyProcess_IsSeen) {
  Machine machine;
  machine.look({::getpid()});
  auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(150);
  volatile double work = 0;
  while (std::chrono::steady_clock::now() < until) work = work + 1;
  MachineUsage usage = machine.look({::getpid()});
  EXPECT_GT(usage.cpu_pct, 5);
  EXPECT_GT(usage.mem_mb, 1);
  EXPECT_GT(usage.host_mem_pct, 0);
  EXPECT_LE(usage.host_cpu_pct, 100.5);
}

}  // namespace
}  // namespace weir::posix
