#include "signals.hpp"

#include <boost/asio/steady_timer.hpp>

#include <gtest/gtest.h>

#include <csignal>

namespace weir::apps {
namespace {

using namespace std::chrono_literals;

struct SignalsTest : testing::Test {
  ~SignalsTest() override { std::signal(SIGUSR2, SIG_DFL); }
  boost::asio::io_context io{1};
  std::vector<int> heard;
};

TEST_F(SignalsTest, AreHeardOneAfterTheOther_AlsoThoseThatCameBefore) {
  Signals signals(io);
  signals.add({SIGUSR2});
  std::raise(SIGUSR2);
  signals.hear([&](int signal) {
    heard.push_back(signal);
    if (heard.size() == 3) signals.stop();
    else std::raise(SIGUSR2);
  });
  io.run_for(10s);
  EXPECT_EQ(heard, std::vector<int>(3, SIGUSR2));
  EXPECT_TRUE(io.stopped()) << "something is still waited for";
}

// A timer that is due is looked at after the signal has arrived, and before it is handed on.
TEST_F(SignalsTest, OneThatHasArrivedWhenTheyStop_IsNotHeard_AndKeepsTheLoopNoLongerAlive) {
  Signals signals(io);
  signals.add({SIGUSR2});
  signals.hear([&](int signal) { heard.push_back(signal); });
  boost::asio::steady_timer end(io, 0s);
  end.async_wait([&](const boost::system::error_code&) { signals.stop(); });
  std::raise(SIGUSR2);
  io.run_for(10s);
  EXPECT_TRUE(heard.empty());
  EXPECT_TRUE(io.stopped()) << "something is still waited for";
}

TEST_F(SignalsTest, OneThatComesWhenTheyAreGone_IsIgnored) {
  {
    Signals signals(io);
    signals.add({SIGUSR2});
  }
  std::raise(SIGUSR2);
}

}  // namespace
}  // namespace weir::apps
