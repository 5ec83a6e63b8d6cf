// `weir cluster` end to end: a real control plane, two processes of a cluster, detection workers written in Python with
// another WebSocket library, and cameras.
#include "cluster_house.hpp"

namespace weir::test {
namespace {

using Cluster = ClusterHouse;

TEST_F(Cluster, ADisplay_BecomesDetections_AndMovesWithItsWorkersAndMasters) {
  display("d1", "cam-a");
  start("one");
  ASSERT_TRUE(eventually(20s, [&] { return !runs_at("one", "d1;cam-a").empty(); })) << report();
  start("two");
  // A change of rows is on the wire soon, not after the next look.
  display("d2", "cam-b");
  ASSERT_TRUE(eventually(10s, [&] { return !runs_at("one", "d2;cam-b").empty(); })) << report();
  EXPECT_NE(runs_at("one", "d1;cam-a"), runs_at("one", "d2;cam-b")) << "they are spread";
  ASSERT_TRUE(eventually(20s, [&] { return !heard("cam-a").empty() && !heard("cam-b").empty(); })) << report();
  EXPECT_EQ(heard("cam-a").back(), "one");
  EXPECT_FALSE(is_master("two"));

  // A worker dies: what it had goes to the other.
  int dead = runs_at("one", "d1;cam-a") == address(0) ? 0 : 1;
  workers_[static_cast<size_t>(dead)].reset();
  EXPECT_TRUE(eventually(12s, [&] { return runs_at("one", "d1;cam-a") == address(1 - dead); })) << report();

  // The master dies: the other process is it within its lease, and disturbs nobody.
  processes_["one"]->signal(SIGKILL);
  processes_["one"]->wait();
  EXPECT_TRUE(eventually(20s, [&] {
    return !runs_at("two", "d1;cam-a").empty() && !runs_at("two", "d2;cam-b").empty();
  })) << report();
  EXPECT_TRUE(eventually(20s, [&] {
    auto by = heard("cam-a");
    return !by.empty() && by.back() == "two";
  })) << report();

  // Stopped in good order, it gives the lease back at once.
  processes_["two"]->signal(SIGTERM);
  EXPECT_EQ(processes_["two"]->wait(20s), 0) << processes_["two"]->log();
  start("three");
  EXPECT_TRUE(eventually(4s, [&] { return is_master("three"); })) << report();
}

TEST_F(Cluster, AFrozenMaster_IsSucceeded_AndSaysNothingWhenItGoesOn) {
  display("d1", "cam-a");
  start("one");
  ASSERT_TRUE(eventually(20s, [&] { return !heard("cam-a").empty(); })) << report();
  start("two");
  processes_["one"]->signal(SIGSTOP);
  EXPECT_TRUE(eventually(20s, [&] { return is_master("two"); })) << report();
  EXPECT_TRUE(eventually(20s, [&] { return heard("cam-a").back() == "two"; })) << report();
  processes_["one"]->signal(SIGCONT);
  EXPECT_TRUE(eventually(10s, [&] { return processes_["one"]->log().find("master-lost") != std::string::npos; })) << report();
  size_t before = heard("cam-a").size();
  EXPECT_TRUE(eventually(20s, [&] { return heard("cam-a").size() > before + 3; })) << report();
  auto by = heard("cam-a");
  EXPECT_TRUE(std::all_of(by.begin() + static_cast<std::ptrdiff_t>(before), by.end(), [](const auto& who) { return who == "two"; }));
}

}  // namespace
}  // namespace weir::test
