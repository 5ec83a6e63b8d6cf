#include "weir/worker/dial_limiter.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace weir::worker {
namespace {

SiteId site(const char* id) { return SiteId::trusted(id); }

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

}  // namespace
}  // namespace weir::worker
