#include "backend_rig.hpp"

namespace weir::cluster::testing {
namespace {

TEST_F(BackendTest, OfTwoProcesses_OneIsTheMaster_AndWhatWorkersSeeIsPublishedUnderItsVersion) {
  want("d1;c1");
  Backend& one = start("one");
  ASSERT_TRUE(within(10s, [&] { return one.is_master() && runs("d1;c1"); }));
  Backend& two = start("two");
  pass(20s);
  EXPECT_FALSE(two.is_master());
  EXPECT_TRUE(two.ready());
  see("d1;c1");
  ASSERT_TRUE(within(2s, [&] { return bus_.said.size() == 1; }));
  const event::Event& said = bus_.said[0];
  EXPECT_EQ(said.routing_key, "detections.t1.s1.c1");
  EXPECT_EQ(said.stamp->version.n, epoch(one).as_int64());
  auto payload = *json::parse_text(said.payload);
  EXPECT_EQ(payload.at("runner_id"), "one");
  EXPECT_EQ(payload.at("lease_version"), said.stamp->version.n);
  EXPECT_EQ(payload.at("detections").at(0).at("class"), "car");
  EXPECT_EQ(json::to_text(payload.at("detections").at(0).at("bbox_xyxy")), "[1,2,3,4]");
}

TEST_F(BackendTest, AnAnnouncedChange_IsOnTheWireAtOnce) {
  Backend& one = start("one");
  ASSERT_TRUE(within(15s, [&] { return one.is_master(); }));
  pass(7s);
  want("d1;c1");
  EXPECT_TRUE(within(200ms, [&] { return runs("d1;c1"); }));
  wishes_->clear();
  ++bus_.announced;
  EXPECT_TRUE(within(200ms, [&] { return !runs("d1;c1"); }));
}

TEST_F(BackendTest, AMasterThatIsCutOff_IsSilentAtItsDeadline_AndItsSuccessorAdoptsWhatRuns) {
  want("d1;c1");
  Backend& one = start("one");
  ASSERT_TRUE(within(10s, [&] { return runs("d1;c1"); }));
  Backend& two = start("two");
  pass(3s);
  planes_["one"]->up = false;
  EXPECT_TRUE(within(6s, [&] { return !one.is_master(); })) << "it ends its term by itself";
  EXPECT_FALSE(two.is_master()) << "before anybody else may begin one";
  EXPECT_TRUE(runs("d1;c1")) << "the worker goes on";
  ASSERT_TRUE(within(10s, [&] { return two.is_master(); }));
  pass(10s);
  size_t given = worker_with("d1;c1").times("subscribe d1;c1");
  see("d1;c1");
  ASSERT_TRUE(within(2s, [&] { return bus_.said.size() == 1; }));
  EXPECT_EQ(json::parse_text(bus_.said[0].payload)->at("runner_id"), "two");
  EXPECT_LE(given, 2u) << "once by each master at most";
  planes_["one"]->up = true;
  pass(10s);
  EXPECT_FALSE(one.is_master());
}

TEST_F(BackendTest, AMasterWhoseRightPassedForAMoment_EndsItsTerm_AndBeginsAnother) {
  want("d1;c1");
  Backend& one = start("one");
  ASSERT_TRUE(within(10s, [&] { return one.is_master() && runs("d1;c1"); }));
  // It is in the middle of reading the rows when the right passes, and has it again before it has read them.
  planes_["one"]->reads = false;
  ++bus_.announced;
  pass(1s);
  planes_["one"]->up = false;
  ASSERT_TRUE(within(6s, [&] { return worker_with("d1;c1").connection == 0; })) << "it hangs up";
  planes_["one"]->up = true;
  pass(4s);
  planes_["one"]->reads = true;
  want("d2;c1");
  EXPECT_TRUE(within(15s, [&] { return one.is_master() && runs("d2;c1"); }));
}

TEST_F(BackendTest, ACameraWithALaterVersion_MakesTheMasterRotate) {
  Backend& one = start("one");
  ASSERT_TRUE(within(10s, [&] { return one.is_master(); }));
  std::int64_t before = epoch(one).as_int64();
  want("d1;c1", before);
  ASSERT_TRUE(within(10s, [&] { return runs("d1;c1") && epoch(one).is_int64(); }));
  EXPECT_TRUE(within(5s, [&] { return epoch(one).as_int64() > before; }));
  EXPECT_TRUE(one.is_master()) << "in the same term";
}

TEST_F(BackendTest, ABusThatIsAway_GetsEverythingOnceWhenItIsBack) {
  want("d1;c1");
  Backend& one = start("one");
  ASSERT_TRUE(within(10s, [&] { return one.is_master() && runs("d1;c1"); }));
  bus_.up = false;
  for (int i = 0; i < 5; ++i) see("d1;c1");
  pass(3s);
  EXPECT_TRUE(bus_.said.empty());
  bus_.up = true;
  EXPECT_TRUE(within(2s, [&] { return bus_.said.size() == 5; }));
  pass(2s);
  EXPECT_EQ(bus_.said.size(), 5u);
}

TEST_F(BackendTest, AProcessThatIsStopped_GivesTheLeaseBackAtOnce) {
  Backend& one = start("one");
  ASSERT_TRUE(within(10s, [&] { return one.is_master(); }));
  Backend& two = start("two");
  pass(2s);
  stop("one");
  EXPECT_FALSE(one.is_master());
  EXPECT_TRUE(within(3s, [&] { return two.is_master(); }));
}

}  // namespace
}  // namespace weir::cluster::testing
