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
  asio::awaitable<void> submit(int number, Turn turn) {
    std::function<Result<int>()> work = [this, number]() -> Result<int> {
      ran.push_back(number);
      return number;
    };
    Result<int> result = co_await run_blocking<int>(queue, std::move(work), turn);
    results.push_back(result ? "done" : result.error().reason);
  }
  void spawn(int number, Turn turn = Turn::usual) { asio::co_spawn(io, submit(number, turn), asio::detached); }
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

TEST(JobQueue, TicksRunFirst_ThenLeases_ThenTheRest_EachInOrder) {
  Rig rig;
  rig.spawn(1);
  rig.spawn(2);
  rig.spawn(3, Turn::lease);
  rig.spawn(4, Turn::tick);
  rig.spawn(5, Turn::lease);
  rig.spawn(6);
  rig.io.poll();
  rig.run_jobs(rig.queue.take(4, 1s));
  rig.run_jobs(rig.queue.take(10, 1s));
  rig.io.restart();
  rig.io.poll();
  EXPECT_EQ(rig.ran, (std::vector<int>{4, 3, 5, 1, 2, 6}));
  EXPECT_EQ(rig.results, std::vector<std::string>(6, "done"));
}

TEST(JobQueue, WhatIsPutBack_IsNextOfItsTurn_AndFailsWhenTheQueueIsClosed) {
  Rig rig;
  for (int n = 1; n <= 3; ++n) rig.spawn(n);
  rig.io.poll();
  std::vector<Job> taken = rig.queue.take(2, 1s);
  rig.spawn(4, Turn::lease);
  rig.io.restart();
  rig.io.poll();
  rig.queue.put_back(std::move(taken));
  rig.run_jobs(rig.queue.take(3, 1s));
  EXPECT_EQ(rig.ran, (std::vector<int>{4, 1, 2}));
  taken = rig.queue.take(1, 1s);
  rig.queue.close();
  rig.queue.put_back(std::move(taken));
  rig.io.restart();
  rig.io.poll();
  EXPECT_EQ(rig.results, (std::vector<std::string>{"done", "done", "done", "store_closed"}));
}

TEST(JobQueue, FullQueue_FailsAtOnce) {
  Rig rig;
  for (int n = 0; n < 5; ++n) rig.spawn(n);
  rig.spawn(5, Turn::lease);
  rig.io.poll();
  EXPECT_EQ(rig.results, std::vector<std::string>{"store_overloaded"}) << "others' flood is no reason to refuse a lease";
  rig.queue.close();
  rig.io.restart();
  rig.io.poll();
  EXPECT_EQ(rig.results.size(), 6u);
  EXPECT_EQ(rig.results.back(), "store_closed");
  EXPECT_TRUE(rig.ran.empty());
}

TEST(JobQueue, JobWhoseAskerHasGivenUp_IsNotRun) {
  Rig rig;
  rig.spawn(1);
  rig.io.poll();
  // No thread takes the job until its time limit is over.
  Instant limit = boot_now() + kJobPatience + 10ms;
  std::vector<Job> taken;
  while (boot_now() < limit) rig.io.run_for(std::chrono::milliseconds(20));
  taken = rig.queue.take(10, Duration(0));
  EXPECT_TRUE(taken.empty());
  rig.io.restart();
  rig.io.poll();
  EXPECT_EQ(rig.results, std::vector<std::string>{"store_overloaded"});
}

// As while the thread that takes them hangs in a disk.
TEST(JobQueue, JobThatNobodyTakes_FailsWhenItsPatienceIsOver) {
  Rig rig;
  rig.spawn(1);
  rig.io.poll();
  rig.queue.expire();
  for (Instant limit = boot_now() + kJobPatience + 10ms; boot_now() < limit;) rig.io.run_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(rig.results.empty()) << "too early";
  rig.queue.expire();
  rig.io.restart();
  rig.io.poll();
  EXPECT_EQ(rig.results, std::vector<std::string>{"store_overloaded"});
}

}  // namespace weir
