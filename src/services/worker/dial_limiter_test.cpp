#include "weir/worker/dial_limiter.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

namespace weir::worker {
namespace {

SiteId site(const char* id) { return SiteId::trusted(id); }

struct SharedFile {
  ~SharedFile() { ::unlink(path.c_str()); }
  std::string path = fmt::format("{}/weir-dials-{}", ::testing::TempDir(), ::getpid());
};

// Takes a permit that is free, and gives up at once where none is.
bool may_dial(DialLimiter& limiter, const char* name) {
  std::stop_source stopped;
  stopped.request_stop();
  return static_cast<bool>(limiter.wait(site(name), stopped.get_token()));
}

TEST(DialLimiter, SiteAtItsLimit_HasNoPermitLeft_UntilOneIsGivenBack) {
  DialLimiter limiter(3);
  std::vector<DialLimiter::Permit> held;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(may_dial(limiter, "a")) << i;
    held.push_back(limiter.wait(site("a"), {}));
  }
  EXPECT_FALSE(may_dial(limiter, "a"));
  held.pop_back();
  EXPECT_TRUE(may_dial(limiter, "a"));
}

TEST(DialLimiter, FortyCamerasOfOneSite_NeverDialMoreThanTheLimitAtOnce) {
  DialLimiter limiter(3);
  std::atomic<int> dialling = 0, peak = 0, done = 0;
  {
    std::vector<std::jthread> cameras;
    for (int i = 0; i < 40; ++i)
      cameras.emplace_back([&] {
        auto permit = limiter.wait(site("a"), {});
        int now = ++dialling;
        for (int seen = peak; now > seen && !peak.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::yield();
        --dialling;
        ++done;
      });
  }
  EXPECT_EQ(done, 40);
  EXPECT_LE(peak, 3);
  EXPECT_GE(peak, 1);
}

TEST(DialLimiter, AnotherSite_DoesNotWait) {
  DialLimiter limiter(1);
  auto held = limiter.wait(site("a"), {});
  auto other = limiter.wait(site("b"), {});
  EXPECT_TRUE(other);
}

TEST(DialLimiter, ReleasedPermit_LetsTheNextOneDial) {
  DialLimiter limiter(1);
  auto held = limiter.wait(site("a"), {});
  EXPECT_FALSE(may_dial(limiter, "a"));
  std::atomic<bool> dialled = false;
  std::jthread next([&] {
    auto permit = limiter.wait(site("a"), {});
    dialled = true;
  });
  EXPECT_FALSE(dialled);
  held.release();
  next.join();
  EXPECT_TRUE(dialled);
}

TEST(DialLimiter, WhoGivesUp_DoesNotBlockThoseBehind) {
  DialLimiter limiter(1);
  auto held = limiter.wait(site("a"), {});
  std::stop_source stop;
  std::jthread impatient([&] { EXPECT_FALSE(limiter.wait(site("a"), stop.get_token())); });
  stop.request_stop();
  impatient.join();
  held.release();
  EXPECT_TRUE(limiter.wait(site("a"), {}));
}

TEST(DialLimiter, WorkersOfOneRunner_ShareTheLimit) {
  SharedFile file;
  DialLimiter one(2, file.path), two(2, file.path);
  auto first = one.wait(site("a"), {});
  auto second = two.wait(site("a"), {});
  EXPECT_TRUE(two.wait(site("b"), {})) << "another site";
  std::atomic<bool> dialled = false;
  std::jthread third([&] {
    auto permit = one.wait(site("a"), {});
    dialled = true;
  });
  std::stop_source stop;
  std::jthread impatient([&] { EXPECT_FALSE(two.wait(site("a"), stop.get_token())); });
  stop.request_stop();
  impatient.join();
  EXPECT_FALSE(dialled);
  second.release();
  third.join();
  EXPECT_TRUE(dialled);
}

TEST(DialLimiter, WorkerThatDied_HoldsNobodyUp) {
  SharedFile file;
  DialLimiter living(1, file.path);
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  pid_t child = ::fork();
  if (child == 0) {
    DialLimiter dying(1, file.path);
    auto permit = dying.wait(site("a"), {});
    ::close(pipe[1]);
    for (;;) ::pause();
  }
  ::close(pipe[1]);
  char byte = 0;
  EXPECT_EQ(::read(pipe[0], &byte, 1), 0);  // it has its permit now
  ::close(pipe[0]);
  EXPECT_FALSE(may_dial(living, "a"));
  std::atomic<bool> dialled = false;
  std::jthread next([&] {
    auto permit = living.wait(site("a"), {});
    dialled = true;
  });
  EXPECT_FALSE(dialled);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  next.join();
  EXPECT_TRUE(dialled);
}

}  // namespace
}  // namespace weir::worker
