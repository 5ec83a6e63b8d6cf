#include "weir/posix/run_lock.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace weir::posix {
namespace {

namespace fs = std::filesystem;

class RunLockTest : public ::testing::Test {
 protected:
  RunLockTest() {
    char name[] = "/tmp/weir-lock-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~RunLockTest() override { fs::remove_all(folder_); }
  std::string path() const { return folder_ + "/runner.lock"; }
  static Testament testament() { return {RunnerId::trusted("r1"), BootId::trusted("b1"), Secret("will-secret")}; }
  std::string folder_;
};

TEST_F(RunLockTest, TwoAtOnce_AreRefused) {
  auto first = RunLock::take(path());
  ASSERT_TRUE(first);
  auto second = RunLock::take(path());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason, "already_running");
}

TEST_F(RunLockTest, WhatADeadBootLeftBehind_IsFoundByTheNextOne) {
  {
    auto lock = RunLock::take(path());
    ASSERT_TRUE(lock);
    EXPECT_FALSE(lock->left_behind());
    ASSERT_TRUE(lock->write(testament()));
  }
  struct stat about {};
  ASSERT_EQ(::stat(path().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u) << "it holds a secret";
  auto next = RunLock::take(path());
  ASSERT_TRUE(next);
  ASSERT_TRUE(next->left_behind());
  EXPECT_EQ(next->left_behind()->boot.str(), "b1");
  EXPECT_EQ(next->left_behind()->will.reveal(), "will-secret");
}

TEST_F(RunLockTest, AClearedTestament_LeavesNothing) {
  {
    auto lock = RunLock::take(path());
    ASSERT_TRUE(lock->write(testament()));
    ASSERT_TRUE(lock->clear());
  }
  EXPECT_FALSE(RunLock::take(path())->left_behind());
}

// The boot of a copied folder may be alive on the machine it was copied from.
TEST_F(RunLockTest, ACopiedFolder_ProvesNothing) {
  {
    auto lock = RunLock::take(path());
    ASSERT_TRUE(lock->write(testament()));
  }
  fs::copy_file(path(), folder_ + "/copy.lock");
  auto copy = RunLock::take(folder_ + "/copy.lock");
  ASSERT_TRUE(copy);
  EXPECT_FALSE(copy->left_behind());
}

TEST_F(RunLockTest, AChildThatOutlivesItsParent_KeepsTheLock) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  auto lock = std::make_unique<Result<RunLock>>(RunLock::take(path()));
  ASSERT_TRUE(*lock);
  pid_t child = ::fork();
  if (child == 0) {
    ::close(pipe[1]);
    char byte;
    while (::read(pipe[0], &byte, 1) > 0) {
    }
    ::_exit(0);
  }
  ::close(pipe[0]);
  lock.reset();
  EXPECT_FALSE(RunLock::take(path())) << "a worker of the dead runner may still speak";
  ::close(pipe[1]);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(RunLock::take(path()));
}

// A worker is given its document as descriptor 3: where the lock stood there, no worker would hold it.
TEST_F(RunLockTest, StandsClearOfTheDescriptorsThatChildrenAreGivenByNumber) {
  auto lock = RunLock::take(path());
  ASSERT_TRUE(lock);
  int found = 0;
  for (const auto& each : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (fs::read_symlink(each.path(), gone) != path()) continue;
    ++found;
    EXPECT_GE(std::stoi(each.path().filename()), 10);
  }
  EXPECT_EQ(found, 1);
}

TEST_F(RunLockTest, Garbage_IsNoTestament) {
  ::setenv("WEIR_TEST_LOCK", path().c_str(), 1);
  ASSERT_EQ(std::system("printf '{\"identity\":1' > \"$WEIR_TEST_LOCK\""), 0);
  auto lock = RunLock::take(path());
  ASSERT_TRUE(lock);
  EXPECT_FALSE(lock->left_behind());
}

}  // namespace
}  // namespace weir::posix
