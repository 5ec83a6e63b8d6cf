// `weir up` where detection workers are named: a process of a detector cluster runs beside it, and the screen shows what
// the workers are given.
#include "program.hpp"
#include "up_testing.hpp"
#include "where.hpp"

namespace weir::test {
namespace {

class WeirUpCluster : public WeirUp {
 protected:
  void SetUp() override {
    WeirUp::SetUp();
    if (!IsSkipped() && std::system("/usr/bin/python3 -c 'import websockets' 2>/dev/null") != 0)
      GTEST_SKIP() << "python3-websockets is not installed";
  }
  // Has the simulated camera looked at by the cluster.
  void furnish_cluster() {
    std::ofstream(folder_.path() + "/model.bin") << "no model at all";
    ask("camera set demo-1 processing=cluster");
    ask("model add motion --tenant demo --id 7");
    ask("model upload 7 " + folder_.path() + "/model.bin");
    ask("playlist add lunch --tenant demo --model 7");
    ask("display add door --tenant demo --camera demo-1 --playlist lunch");
  }
};

TEST_F(WeirUpCluster, ACameraOfTheCluster_IsShownWithItsWorker_AndTheProcessEndsWithUp) {
  int port = free_port();
  Program worker(folder_.path() + "/worker.log",
                 {"/usr/bin/python3", WEIR_SOURCE_DIR "/examples/detector_worker.py", "--port", std::to_string(port),
                  "--models", folder_.path() + "/models"});
  UpProcess up(folder_, {"--demo", "1", "--detector-workers", fmt::format("ws://127.0.0.1:{}", port)});
  ASSERT_TRUE(eventually(60s, [&] { return up.out().find("demo-1: STREAMING") != std::string::npos; })) << up.err();
  furnish_cluster();
  std::string shown = fmt::format("door;demo-1: active at ws://127.0.0.1:{}", port);
  EXPECT_TRUE(eventually(30s, [&] { return up.out().find(shown) != std::string::npos; })) << up.out() << up.err();
  EXPECT_TRUE(eventually(30s, [&] { return !ask("events 'detections.#' --after 0").empty(); })) << worker.log();

  std::vector<int> cluster = up.children_with("--cluster-process-id");
  ASSERT_EQ(cluster.size(), 1u);
  up.signal(SIGKILL);
  up.wait(5s);
  EXPECT_TRUE(eventually(20s, [&] { return !fs::exists(fmt::format("/proc/{}", cluster[0])); })) << up.err();
}

}  // namespace
}  // namespace weir::test
