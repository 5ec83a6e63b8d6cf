#include "weir/base/spawn.hpp"

#include "weir/base/log.hpp"

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <stdexcept>

namespace weir {
namespace {

boost::asio::awaitable<void> note(int& runs) {
  ++runs;
  co_return;
}

boost::asio::awaitable<void> fail(bool known) {
  if (known) throw std::runtime_error("the table is gone");
  throw 7;
  co_return;
}

TEST(Spawn, RunsTheWork_ThenSaysThatItEnded) {
  boost::asio::io_context io;
  int runs = 0, ended = 0;
  spawn(io.get_executor(), note(runs), "a note", [&] { ended = runs; });
  EXPECT_EQ(runs, 0) << "not before the loop runs";
  io.run();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(ended, 1);
}

TEST(SpawnDeathTest, AnException_IsLoggedWithTheWorksName_AndEndsTheProgram) {
  auto run = [](bool known) {
    log::configure({.level = log::Level::error});
    boost::asio::io_context io;
    bool ended = false;
    spawn(io.get_executor(), fail(known), "the cleaning", [&] { ended = true; });
    io.run();
    std::_Exit(ended ? 1 : 2);
  };
  EXPECT_EXIT(run(true), ::testing::ExitedWithCode(kExitBroken), "program.broken.*the cleaning: the table is gone");
  EXPECT_EXIT(run(false), ::testing::ExitedWithCode(kExitBroken), "program.broken.*the cleaning: an exception");
}

}  // namespace
}  // namespace weir
