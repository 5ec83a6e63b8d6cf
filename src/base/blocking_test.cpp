#include "weir/base/blocking.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <thread>

namespace weir {
namespace {

namespace asio = boost::asio;

struct Blocking : testing::Test {
  asio::io_context io{1};
  JobQueue queue{2};
  std::vector<std::string> ended;

  void ask(int number) {
    asio::co_spawn(
        io,
        [this, number]() -> asio::awaitable<void> {
          auto result = co_await run_blocking<int>(queue, [number]() -> Result<int> { return number; });
          ended.push_back(result ? std::to_string(*result) : result.error().reason);
        },
        [](const std::exception_ptr&) {});
  }
  void work_once(size_t most = 10) {
    for (Job& job : queue.take(most, 1s)) {
      job.work();
      job.done();
    }
  }
};
using Ended = std::vector<std::string>;

TEST_F(Blocking, Work_RunsOnItsThread_AndResumesTheLoop) {
  std::thread::id where;
  bool resumed_here = false;
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        auto result = co_await run_blocking<Nothing>(queue, [&]() -> Status {
          where = std::this_thread::get_id();
          return ok();
        });
        resumed_here = result && where != std::this_thread::get_id();
      },
      [](const std::exception_ptr&) {});
  std::thread worker([&] { work_once(); });
  io.run();
  worker.join();
  EXPECT_TRUE(resumed_here);
}

TEST_F(Blocking, AFullQueue_RefusesAtOnce) {
  for (int i = 1; i <= 3; ++i) ask(i);
  io.poll();
  EXPECT_EQ(queue.waiting(), 2u);
  EXPECT_EQ(ended, (Ended{"store_overloaded"}));
  work_once();
  io.poll();
  EXPECT_EQ(ended, (Ended{"store_overloaded", "1", "2"}));
}

TEST_F(Blocking, Closing_FailsWhatWaits_AndWhatComesLater) {
  ask(1);
  io.poll();
  queue.close();
  ask(2);
  io.poll();
  EXPECT_TRUE(queue.closed());
  EXPECT_EQ(ended, (Ended{"store_closed", "store_closed"}));
  EXPECT_TRUE(queue.take(1, 0s).empty());
}

TEST_F(Blocking, Taking_IsBounded_AndInOrder) {
  ask(1);
  ask(2);
  io.poll();
  work_once(1);
  io.poll();
  EXPECT_EQ(ended, (Ended{"1"}));
  EXPECT_EQ(queue.waiting(), 1u);
  work_once(1);
  io.poll();
  EXPECT_EQ(ended, (Ended{"1", "2"}));
  EXPECT_TRUE(queue.take(1, 0s).empty());
}

}  // namespace
}  // namespace weir
