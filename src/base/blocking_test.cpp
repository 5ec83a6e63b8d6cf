#include "weir/base/blocking.hpp"

#include "weir/base/clock.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

namespace weir {

namespace {
namespace asio = boost::asio;

// Submits jobs that write down their number, and what became of each.
struct Rig {
  asio::awaitable<void> submit(int number, bool urgent) {
    std::function<Result<int>()> work = [this, number]() -> Result<int> {
      ran.push_back(number);
      return number;
    };
    Result<int> result = co_await run_blocking<int>(queue, std::move(work), urgent);
    results.push_back(result ? "done" : result.error().reason);
  }
  void spawn(int number, bool urgent = false) { asio::co_spawn(io, submit(number, urgent), asio::detached); }
  void run_jobs(std::vector<Job> jobs) {
    for (Job& job : jobs) {
      job.work();
      job.done();
    }
  }
  asio::io_context io;
  JobQueue queue{4};
  std::vector<int> ran;
  std::vector<std::string> results;
};
}  // namespace

TEST(JobQueue, JobsRunInOrder_UrgentOnesFirst) {
  Rig rig;
  rig.spawn(1);
  rig.spawn(2);
  rig.spawn(3, true);
  rig.io.poll();
  rig.run_jobs(rig.queue.take(10, 1s));
  rig.io.restart();
  rig.io.poll();
  EXPECT_EQ(rig.ran, (std::vector<int>{3, 1, 2}));
  EXPECT_EQ(rig.results, (std::vector<std::string>{"done", "done", "done"}));
}

TEST(JobQueue, FullQueue_FailsAtOnce) {
  Rig rig;
  for (int n = 0; n < 5; ++n) rig.spawn(n);
  rig.io.poll();
  EXPECT_EQ(rig.results, std::vector<std::string>{"store_overloaded"});
  rig.queue.close();
  rig.io.restart();
  rig.io.poll();
  EXPECT_EQ(rig.results.size(), 5u);
  EXPECT_EQ(rig.results.back(), "store_closed");
  EXPECT_TRUE(rig.ran.empty());
}

TEST(JobQueue, JobWhoseAskerHasGivenUp_IsNotRun) {
  Rig rig;
  rig.spawn(1);
  rig.io.poll();
  // Nobody takes it until its patience is over.
  Instant limit = boot_now() + kJobPatience + 10ms;
  std::vector<Job> taken;
  while (boot_now() < limit) rig.io.run_for(std::chrono::milliseconds(20));
  taken = rig.queue.take(10, Duration(0));
  EXPECT_TRUE(taken.empty());
  rig.io.restart();
  rig.io.poll();
  EXPECT_EQ(rig.results, std::vector<std::string>{"store_overloaded"});
}

}  // namespace weir
