// Processes that are killed, processes that hold locks, disks that are full.
#include "testing.hpp"

#include "files.hpp"

#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

namespace weir::spool {

namespace {

// A child that runs `body` with the write end of a pipe, and is killed and reaped at the latest by the destructor.
class Child {
 public:
  template <class Body>
  explicit Child(Body body) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      body(ends[1]);
      ::_exit(0);
    }
    ::close(ends[1]);
    from_ = Fd(ends[0]);
  }
  ~Child() { kill(); }
  // The next number that the child wrote; -1 at its end.
  int hear() {
    int n = -1;
    return ::read(from_.get(), &n, sizeof n) == sizeof n ? n : -1;
  }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  Fd from_;
};

void say(int pipe, int n) {
  if (::write(pipe, &n, sizeof n) != sizeof n) ::_exit(1);
}

}  // namespace

TEST(SpoolCrash, KilledAtAnyPoint_WhatWasFlushedIsThere_InOrder_WithoutGarbage) {
  std::mt19937 random(42);
  for (int round = 0; round < 50; ++round) {
    TempDir folder;
    Child child([&](int pipe) {
      auto spool = opened(folder, {.segment_bytes = 20'000});
      for (int n = 0;; ++n) {
        if (!spool->append(kCamera, kTenure, event(n, n * 37 % 2000))) ::_exit(1);
        if (n % 3 == 0 && spool->flush()) say(pipe, n);
      }
    });
    int flushed = -1;
    for (int left = std::uniform_int_distribution(1, 25)(random); left > 0; --left) flushed = child.hear();
    child.kill();
    for (int n = child.hear(); n >= 0; n = child.hear()) flushed = n;
    ASSERT_GE(flushed, 0);
    auto spool = opened(folder);
    ASSERT_TRUE(spool->open(kCamera, kTenure));
    auto there = drained(*spool);
    ASSERT_GT(there.size(), static_cast<size_t>(flushed));
    for (int n = 0; n < static_cast<int>(there.size()); ++n) ASSERT_EQ(there[n], event(n, n * 37 % 2000));
    EXPECT_EQ(spool->counts().damaged, 0u);
    EXPECT_EQ(folders_left(folder), 0u);
  }
}

TEST(SpoolCrash, KilledWhileDraining_ShowsEverythingThatWasNotTaken) {
  std::mt19937 random(7);
  for (int round = 0; round < 10; ++round) {
    TempDir folder;
    Child child([&](int pipe) {
      auto spool = opened(folder, {.segment_bytes = 50'000});
      for (int n = 0; n < 1000; ++n) spool->append(kCamera, kTenure, event(n));
      for (;;) {
        SpoolPage page = spool->peek(kCamera, kTenure, 3, 1 << 20);
        if (page.events.empty()) break;
        // The child tells the parent before it takes the events: events that the parent did not hear of cannot have
        // been taken.
        say(pipe, static_cast<int>(page.first + page.events.size()));
        spool->advance(kCamera, kTenure, page.first + page.events.size());
      }
    });
    int taken = 0;
    for (int left = std::uniform_int_distribution(1, 300)(random); left > 0; --left) taken = child.hear();
    child.kill();
    for (int n = child.hear(); n >= 0; n = child.hear()) taken = n;
    auto spool = opened(folder);
    ASSERT_TRUE(spool->open(kCamera, kTenure));
    auto there = drained(*spool);
    ASSERT_GE(there.size(), static_cast<size_t>(1000 - taken));
    ASSERT_LE(there.size(), static_cast<size_t>(1000 - taken + 10)) << "draining began again far before where it was";
    for (size_t n = 0; n < there.size(); ++n) ASSERT_EQ(there[n], event(static_cast<int>(1000 - there.size() + n)));
  }
}

TEST(SpoolCrash, LiveWriter_IsNeitherAdoptedNorDropped_DeadOneIs) {
  TempDir folder;
  Child child([&](int pipe) {
    auto spool = opened(folder);
    for (int n = 0; n < 5; ++n) spool->append(kCamera, kTenure, event(n));
    say(pipe, 1);
    ::pause();
  });
  ASSERT_EQ(child.hear(), 1);
  auto spool = opened(folder);
  EXPECT_EQ(spool->adopt(kCamera, kTenure, kLater).error().reason, "spool_in_use");
  EXPECT_EQ(spool->open(kCamera, kTenure).error().code, Errc::conflict);
  EXPECT_EQ(spool->drop(kCamera, kTenure), 0u);
  EXPECT_EQ(spool->drop_others(kCamera, kLater), 0u);
  EXPECT_FALSE(spool->append(kCamera, kTenure, event(99)));
  child.kill();
  ASSERT_TRUE(spool->adopt(kCamera, kTenure, kLater));
  EXPECT_EQ(drained(*spool, kCamera, kLater).size(), 5u);
}

TEST(SpoolCrash, FileSizeLimit_RefusesAndCounts_ThenRecovers) {
  TempDir folder;
  Child child([&](int pipe) {
    ::signal(SIGXFSZ, SIG_IGN);
    auto spool = opened(folder);
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    rlimit small{4096, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    int kept = 0;
    for (int n = 0; n < 20; ++n) kept += spool->append(kCamera, kTenure, event(n, 500)) ? 1 : 0;
    SpoolCounts full = spool->counts();
    ::setrlimit(RLIMIT_FSIZE, &before);
    bool recovered = spool->append(kCamera, kTenure, event(20, 500)) && !spool->counts().disk_trouble;
    auto there = drained(*spool);
    say(pipe, kept);
    say(pipe, full.disk_trouble && full.refused == static_cast<std::uint64_t>(20 - kept));
    say(pipe, recovered);
    say(pipe, static_cast<int>(there.size()));
    say(pipe, there.back() == event(20, 500) && there.front() == event(0, 500));
  });
  int kept = child.hear();
  EXPECT_GT(kept, 2);
  EXPECT_LT(kept, 20);
  EXPECT_EQ(child.hear(), 1) << "alarm and count";
  EXPECT_EQ(child.hear(), 1) << "recovery";
  EXPECT_EQ(child.hear(), kept + 1) << "whole records only";
  EXPECT_EQ(child.hear(), 1) << "first and last";
}

TEST(SpoolCrash, FullDisk_RefusesAndCounts_ThenRecoversWhenThereIsRoom) {
  TempDir folder;
  if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=256k") != 0)
    GTEST_SKIP() << "a tmpfs cannot be mounted here";
  {
    auto spool = opened(folder, {.segment_bytes = 20'000});
    int kept = 0;
    for (int n = 0; n < 1000; ++n) kept += spool->append(kCamera, kTenure, event(n, 1000)) ? 1 : 0;
    EXPECT_GT(kept, 50);
    EXPECT_LT(kept, 300);
    EXPECT_TRUE(spool->counts().disk_trouble);
    EXPECT_EQ(spool->counts().refused, static_cast<std::uint64_t>(1000 - kept));
    EXPECT_FALSE(spool->append(CameraId::trusted("new"), kTenure, event(1, 1000)));
    for (int n = 0; n < 30; ++n) spool->advance(kCamera, kTenure, spool->peek(kCamera, kTenure, 1, 1 << 20).first + 1);
    EXPECT_TRUE(spool->append(kCamera, kTenure, event(5000, 1000)));
    EXPECT_FALSE(spool->counts().disk_trouble);
    auto there = drained(*spool);
    EXPECT_EQ(there.size(), static_cast<size_t>(kept - 30 + 1));
    EXPECT_EQ(there.back(), event(5000, 1000));
    EXPECT_EQ(folders_left(folder), 0u);
  }
  EXPECT_EQ(::umount(folder.path().c_str()), 0);
}

}  // namespace weir::spool
