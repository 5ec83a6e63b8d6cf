// The simulated cameras end when they are told to, whatever they are asked for meanwhile.
#include "child.hpp"
#include "shard.hpp"
#include "stall.hpp"
#include "where.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>

namespace weir::test {

// Encoding a new camera's loop takes longer than the moment until the signal; the client that asked for it is cut off.
TEST(Camsim, ToldToEndWhileItEncodes_EndsCleanly) {
  if (part("footage/vtest.avi").empty()) GTEST_SKIP() << "the footage could not be fetched";
  TempDir folder;
  boost::json::object config{{"footage", part("footage/vtest.avi")},
                             {"cache", folder.path()},
                             {"recorders", {{{"name", "rec"}, {"cameras", boost::json::array{}}}}}};
  Child camsim(folder.path() + "/log", {WEIR_CAMSIM, "--config", "/dev/fd/3", "--exit-with-stdin"}, config);
  auto used = [&] {
    std::ifstream stat(fmt::format("/proc/{}/stat", camsim.pid()));
    std::vector<std::string> words{std::istream_iterator<std::string>(stat), {}};
    return words.size() > 14 ? std::stol(words[13]) : 0;
  };
  long before = used();
  std::thread asks([&] {
    camsim.post("/v1/cameras",
                {{"recorder", "rec"}, {"name", "new"}, {"profile", "width=384,height=288,fps=10,keyframe_s=1,seconds=8"}});
  });
  EXPECT_TRUE(eventually(10s, [&] { return used() > before + 5; })) << "it does not encode";
  camsim.signal(SIGTERM);
  EXPECT_EQ(camsim.wait(5s), 0) << camsim.log();
  asks.join();
}

}  // namespace weir::test
