#include "manager_testing.hpp"

namespace weir::runner {
namespace {

TEST_F(ManagerTest, Joins_StartsAWorkerForEachShard_AndGivesItTheCameraWithARight) {
  begin(2);
  ASSERT_TRUE(within(10s, [&] { return speaker("a") && speaker("b"); }));
  EXPECT_TRUE(manager_->registered());
  EXPECT_EQ(wills_, std::vector<std::string>{"boot-1"}) << "told before the first lease";
  EXPECT_NE(speaker("a"), speaker("b"));
  const link::ShardConfig& shard = speaker("a")->shard;
  EXPECT_EQ(shard.runner.str(), "r");
  EXPECT_EQ(shard.control_plane, "http://plane:1");
  EXPECT_EQ(shard.token.reveal(), "bus-token");
  EXPECT_TRUE(shard.crash_file.starts_with("/folder/crash-")) << shard.crash_file;
  EXPECT_EQ(manager_->shards().size(), 2u);
  pass(3s);
  EXPECT_GE(plane_.beats.size(), 3u);
  EXPECT_EQ(plane_.beats.back().at("streams_owned").as_int64(), 2);
  EXPECT_GE(bus_.published, 2u);
  EXPECT_NE(disk_.kept.find("rtsp://h/a"), std::string::npos);
}

TEST_F(ManagerTest, Workers_AreAskedForTheirPageForPeople_OnlyWhenSomebodyAsksTheRunner) {
  begin(2);
  ASSERT_TRUE(within(10s, [&] { return speaker("a") && speaker("b"); }));
  pass(5s);
  EXPECT_EQ(speaker("a")->pages_read + speaker("b")->pages_read, 0);
  EXPECT_EQ(state().at("published").as_double(), 6);
  EXPECT_EQ(speaker("a")->pages_read + speaker("b")->pages_read, 2);
}

TEST_F(ManagerTest, FrozenWorker_DelaysNobodyWhoAsks_AndItsCamerasAreSaidNotToAnswer) {
  begin(2);
  ASSERT_TRUE(within(10s, [&] { return speaker("a") && speaker("b"); }));
  pass(1s);
  speaker("a")->silent = true;
  pass(2500ms);
  Instant asked = clock_.now();
  json::object said = state();
  EXPECT_LE(clock_.now() - asked, 400ms);
  const json::array& cameras = said.at("cameras").as_array();
  ASSERT_EQ(cameras.size(), 2u);
  EXPECT_EQ(cameras[0].at("state").as_string(), "NOT_ANSWERING");
  EXPECT_FALSE(cameras[1].as_object().contains("state")) << "this worker answers, and its page names no camera";
}

TEST_F(ManagerTest, ControlPlaneThatIsAway_IsAskedUntilItAnswers) {
  plane_.away = true;
  begin(1);
  pass(20s);
  EXPECT_FALSE(manager_->registered());
  EXPECT_TRUE(host_.all.empty());
  plane_.away = false;
  EXPECT_TRUE(within(15s, [&] { return speaker("a") != nullptr; }));
}

TEST_F(ManagerTest, BootThatIsKnownAlready_GivesWayToAnotherOne) {
  plane_.known_boots = 1;
  begin(1);
  ASSERT_TRUE(within(15s, [&] { return speaker("a") != nullptr; }));
  ASSERT_EQ(plane_.boots.size(), 2u);
  EXPECT_NE(plane_.boots[1], "boot-1");
  EXPECT_EQ(wills_, std::vector<std::string>{plane_.boots[1]});
  EXPECT_EQ(speaker("a")->cameras.begin()->second->tenure.boot.str(), plane_.boots[1]);
}

TEST_F(ManagerTest, RenewedLeases_AndAnotherBus_ArePassedOn) {
  begin(1);
  ASSERT_TRUE(within(10s, [&] { return speaker("a") != nullptr; }));
  auto worker = speaker("a");
  Instant first = worker->cameras.begin()->second->valid_until;
  pass(5s);
  Instant last = first;
  for (const link::Message& each : worker->told)
    if (const auto* leases = std::get_if<link::Leases>(&each); leases != nullptr && !leases->items.empty())
      last = leases->items[0].valid_until;
  EXPECT_GT(last, first + 2s);
  manager_->change(Policy{.shard_size = 1}, "http://other:2");
  pass(1s);
  const auto* bus = std::get_if<link::Leases>(&*std::ranges::find_if(worker->told, [](const link::Message& m) {
    const auto* leases = std::get_if<link::Leases>(&m);
    return leases != nullptr && leases->base_url == "http://other:2";
  }));
  ASSERT_NE(bus, nullptr);
  EXPECT_EQ(bus->token.reveal(), "bus-token");
}

// Answers of a worker that once ended the whole runner.
class ManagerHearsNonsense : public ManagerTest, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Looks, ManagerHearsNonsense,
                         ::testing::Values(R"({"cameras":[{"camera_uuid":7}]})", R"({"cameras":[],"stuck":[5]})",
                                           R"({"cameras":"all"})", "[]", "", R"({"cameras":[{"camera_uu)",
                                           "<html>Bad gateway</html>"));

TEST_P(ManagerHearsNonsense, TheWorkerIsReplaced_TheOthersAndTheRunnerGoOn) {
  begin(2);
  ASSERT_TRUE(within(10s, [&] { return speaker("a") && speaker("b"); }));
  auto bad = speaker("a"), good = speaker("b");
  bad->says = GetParam();
  ASSERT_TRUE(within(40s, [&] { return bad->exit_code && speaker("a"); })) << "not replaced";
  EXPECT_NE(speaker("a"), bad);
  EXPECT_EQ(speaker("b"), good);
  EXPECT_FALSE(good->exit_code);
  pass(5s);
  EXPECT_FALSE(code_) << "the runner has ended";
  EXPECT_EQ(manager_->brain().summary().owned, 2);
}

TEST_F(ManagerTest, WorkerThatDoesNotAnswer_IsReplaced_TheOthersGoOn) {
  begin(2);
  ASSERT_TRUE(within(10s, [&] { return speaker("a") && speaker("b"); }));
  auto bad = speaker("a"), good = speaker("b");
  bad->silent = true;
  ASSERT_TRUE(within(40s, [&] { return bad->exit_code && speaker("a"); }));
  EXPECT_FALSE(good->exit_code);
  EXPECT_FALSE(code_);
}

TEST_F(ManagerTest, WorkerThatDoesNotStart_IsTriedAgain_TheOthersGoOn) {
  begin(1);
  ASSERT_TRUE(within(10s, [&] { return speaker("a") != nullptr; }));
  host_.start_well = false;
  want("b");
  bus_.say("camera.#", "camera.updated.t.s.b", {});
  ASSERT_TRUE(within(10s, [&] { return host_.all.size() >= 3; })) << "not tried again";
  EXPECT_EQ(speaker("b"), nullptr);
  host_.start_well = true;
  EXPECT_TRUE(within(60s, [&] { return speaker("b") != nullptr; }));
  EXPECT_FALSE(host_.all[0]->exit_code);
  EXPECT_FALSE(code_);
}

// Half an answer does not say what was last published for the camera: no worker may publish after it as if it did.
TEST_F(ManagerTest, HalfAnAnswerToARemoval_IsNoConfirmation_AndTheWorkerIsReplaced) {
  begin(2);
  ASSERT_TRUE(within(10s, [&] { return speaker("a") && speaker("b"); }));
  auto bad = speaker("a"), good = speaker("b");
  bad->answers = R"({"added":0,"removed":[{"camera_uuid":"a","last_cap)";
  std::erase_if(plane_.cameras, [](const DesiredCamera& each) { return each.config.camera.str() == "a"; });
  bus_.say("camera.#", "camera.updated.t.s.a", {});
  ASSERT_TRUE(within(40s, [&] { return bad->exit_code.has_value(); })) << "taken for a confirmation";
  EXPECT_FALSE(good->exit_code);
  EXPECT_FALSE(code_);
}

TEST_F(ManagerTest, CrashedWorker_IsReplaced_AndTheCameraOfItsThreadIsReported) {
  begin(1);
  ASSERT_TRUE(within(10s, [&] { return speaker("a") != nullptr; }));
  auto dead = speaker("a");
  disk_.blamed = CameraId::trusted("a");
  dead->exit_code = 139;
  ASSERT_TRUE(within(10s, [&] { return speaker("a") && speaker("a") != dead; }));
  EXPECT_EQ(plane_.crashed, std::vector{CameraId::trusted("a")});
}

TEST_F(ManagerTest, SpoolOfACameraThatAnotherHasHadSince_IsDropped_OneWhoseTenureMayGoOnIsKept) {
  for (const char* name : {"lost", "mine"})
    disk_.left.push_back({CameraId::trusted(name), {BootId::trusted("boot-0"), {5}}, 10});
  plane_.rows.push_back({.subject = CameraId::trusted("lost"), .owner = {RunnerId::trusted("x"), {}}, .grant = {9}});
  plane_.rows.push_back({.subject = CameraId::trusted("mine"), .owner = {RunnerId::trusted("r"), {}}, .grant = {5}});
  begin(1);
  EXPECT_TRUE(within(40s, [&] { return disk_.dropped.size() == 1; }));
  pass(20s);
  EXPECT_EQ(disk_.dropped, std::vector{CameraId::trusted("lost")});
}

TEST_F(ManagerTest, SomebodyWantsToSeeACamera_ItsPictureIsSentUp) {
  begin(1);
  ASSERT_TRUE(within(10s, [&] { return speaker("a") != nullptr; }));
  bus_.say("camera.#", "camera.snapshot_wanted.a",
           {{"camera_uuid", "a"}, {"request_id", "q1"}, {"runner_id", "r"}, {"boot_id", "boot-1"}});
  ASSERT_TRUE(within(5s, [&] { return plane_.pictures.size() == 1; }));
  EXPECT_EQ(plane_.pictures[0].request, "q1");
  EXPECT_FALSE(plane_.pictures[0].jpeg.empty());
}

TEST_F(ManagerTest, Stopped_LetsGoOfEverything_AndEnds) {
  begin(2);
  ASSERT_TRUE(within(10s, [&] { return speaker("a") && speaker("b"); }));
  manager_->stop(30s);
  EXPECT_TRUE(within(40s, [&] { return code_.has_value(); }));
  EXPECT_EQ(code_, 0);
}

TEST_F(ManagerTest, ControlPlaneThatDoesNotKnowItAnyMore_EndsTheRunnerForAnotherStart) {
  begin(1);
  ASSERT_TRUE(within(10s, [&] { return speaker("a") != nullptr; }));
  plane_.forgotten = true;
  EXPECT_TRUE(within(10s, [&] { return code_.has_value(); }));
  EXPECT_EQ(code_, 60);
}

}  // namespace
}  // namespace weir::runner
