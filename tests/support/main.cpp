// The main of every test executable: GoogleTest, a watch over machine stalls, and quiet logs.
#include "stall.hpp"

#include "weir/base/log.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

// Read by the thread sanitizer, where there is one. It cannot see the locks inside GStreamer, by which the simulated
// cameras' threads hand everything over, nor those of the inference libraries.
extern "C" const char* __tsan_default_options() { return "ignore_noninstrumented_modules=1"; }
extern "C" const char* __tsan_default_suppressions() { return "race:weir::camsim\n"; }

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  ::setenv("ORT_DISABLE_TELEMETRY", "1", 1);  // as the worker does
  // The same room on every machine, and no runner that a test starts measures its own first.
  ::setenv("CAPACITY_STREAMS", "40", 0);
  testing::InitGoogleTest(&argc, argv);
  weir::log::Config config;
  config.level = std::getenv("WEIR_TEST_LOG") != nullptr ? weir::log::Level::debug : weir::log::Level::off;
  weir::log::configure(config);
  weir::test::StallMonitor::get();
  return RUN_ALL_TESTS();
}
