// The main of every test executable: GoogleTest, a watch over machine stalls, and quiet logs.
#include "stall.hpp"

#include "weir/base/log.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  testing::InitGoogleTest(&argc, argv);
  weir::log::Config config;
  config.level = std::getenv("WEIR_TEST_LOG") != nullptr ? weir::log::Level::debug : weir::log::Level::off;
  weir::log::configure(config);
  weir::test::StallMonitor::get();
  return RUN_ALL_TESTS();
}
