#include "server_process.hpp"

#include "log_lines.hpp"
#include "postgres_server.hpp"

#include "weir/base/log.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace weir::apps {
namespace {

// A reload brings its log level into effect, which shows that there was one.
class ServerProcessSignals : public testing::Test {
 protected:
  void SetUp() override { log::set_level(log::Level::off); }
  void TearDown() override { log::set_level(talkative_ ? log::Level::debug : log::Level::off); }
  static bool ends_the_process(int signal) {
    struct sigaction present {};
    return ::sigaction(signal, nullptr, &present) != 0 || present.sa_handler == SIG_DFL;
  }
  const bool talkative_ = log::enabled(log::Level::debug);
  test::TempDir folder_;
};

TEST_F(ServerProcessSignals, ThatComeBetweenStartAndRun_AreKept_AndObeyedWhenItRuns) {
  Arguments arguments({}, {{"listen", "127.0.0.1:0"}, {"state_dir", folder_.path()}, {"log_level", "error"}}, {});
  ServerProcess process(arguments, *arguments.settings());
  auto started = process.start(Secret("sqlite:" + folder_.path() + "/weir.db"));
  ASSERT_TRUE(started) << started.error().message;
  for (int signal : {SIGHUP, SIGTERM}) {
    ASSERT_FALSE(ends_the_process(signal)) << signal;
    std::raise(signal);
  }
  EXPECT_FALSE(log::enabled(log::Level::error));
  EXPECT_EQ(process.run(30s), 0);
  EXPECT_TRUE(log::enabled(log::Level::error)) << "the first was lost";
}

TEST(ServerProcess, ThatEndsBecauseItsCompanionFailed_EndsWithOne_AndNotCleanly) {
  test::TempDir folder;
  test::LogLines log;
  Arguments arguments({}, {{"listen", "127.0.0.1:0"}, {"state_dir", folder.path()}}, {});
  ServerProcess process(arguments, *arguments.settings());
  auto started = process.start(Secret("sqlite:" + folder.path() + "/weir.db"));
  ASSERT_TRUE(started) << started.error().message;
  process.attach({.run = []() -> boost::asio::awaitable<void> {
                    throw std::runtime_error("broken");
                    co_return;
                  },
                  .stop = {}});
  EXPECT_EQ(process.run(30s), 1);
  EXPECT_EQ(log.count("companion.failed"), 1u) << log.all();
  EXPECT_EQ(log.count("stopped cleanly"), 0u) << log.all();
}

TEST(ConnectionsAllowed, LeaveDescriptorsForTheRest) {
  EXPECT_EQ(connections_allowed(20'000, 1 << 20), 20'000u);
  EXPECT_EQ(connections_allowed(20'000, SIZE_MAX), 20'000u);
  EXPECT_EQ(connections_allowed(20'000, 4096), 3840u);
  EXPECT_EQ(connections_allowed(20'000, 1024), 768u);
  EXPECT_EQ(connections_allowed(20'000, 100), 50u);
  EXPECT_EQ(connections_allowed(10, 100), 10u);
}

}  // namespace
}  // namespace weir::apps
