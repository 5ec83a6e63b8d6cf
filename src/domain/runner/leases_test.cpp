#include "weir/runner/leases.hpp"

#include "parts_testing.hpp"

namespace weir::runner {
namespace {

using namespace testing;
using lease::Operation;
using lease::Outcome;

struct LeasesTest : ::testing::Test {
  std::vector<lease::Question> asked() {
    leases.flush(turn);
    std::vector<lease::Question> out;
    actions = turn.take();
    for (const AskLeases& ask : only<AskLeases>(actions))
      out.insert(out.end(), ask.questions.begin(), ask.questions.end());
    return out;
  }
  void answer(const lease::Question& question, Outcome outcome, std::int64_t version, std::int64_t grant = 0) {
    lease::Answer out{question.ask.subject};
    out.outcome = outcome;
    out.version = {version};
    out.grant = {grant == 0 ? version : grant};
    out.ttl = 6s;
    leases.hear(LeasesHeard{{{question.ask.subject, lease::Answered{question.id, out}}}}, cameras, turn);
  }
  // The camera, acquired under this version.
  Camera& acquire(const std::string& name, std::int64_t version) {
    Camera& camera = add_camera(cameras, name);
    leases.feed(camera, lease::Wanted{}, turn);
    answer(asked().at(0), Outcome::granted, version);
    EXPECT_TRUE(camera.holding());
    return camera;
  }

  Turn turn = turn_at(kNow);
  Cameras cameras;
  Leases leases{BootId::trusted("b1"), RunnerId::trusted("r1")};
  std::vector<Action> actions;
};

TEST_F(LeasesTest, WhatIsFree_IsAskedForUpToTheRoom_WhoHasWaitedLongestFirst) {
  turn.policy.capacity = 3;
  add_held(cameras, "held");
  for (const char* name : {"a", "b", "c"}) add_camera(cameras, name).lease.try_at = kNow;
  cameras.at(cam("c")).lease.try_at = kNow - 5s;
  add_camera(cameras, "later").lease.try_at = kNow + 1ms;
  add_camera(cameras, "unwanted").desired = false;
  add_camera(cameras, "spoken for").voice.on = 1;
  leases.acquire(cameras, turn);
  std::vector<std::string> names;
  for (const lease::Question& question : asked()) names.push_back(question.ask.subject.str());
  EXPECT_EQ(names, (std::vector<std::string>{"c", "a"}));
}

TEST_F(LeasesTest, Questions_GoInBatchesOfOneOperation) {
  turn.policy.capacity = turn.policy.workers_max = 2000;
  for (int i = 0; i < 1100; ++i) add_camera(cameras, fmt::format("{:04}", i));
  leases.acquire(cameras, turn);
  leases.feed(add_held(cameras, "left"), lease::Unwanted{}, turn);
  asked();
  std::vector<size_t> sizes;
  for (const AskLeases& ask : only<AskLeases>(actions)) {
    sizes.push_back(ask.questions.size());
    for (const lease::Question& each : ask.questions) EXPECT_EQ(each.operation, ask.questions[0].operation);
  }
  EXPECT_EQ(sizes, (std::vector<size_t>{500, 500, 100, 1}));
}

TEST_F(LeasesTest, ANewGrant_BeginsWithNothingPaidSeenOrSaid) {
  Camera& camera = acquire("c", 10);
  EXPECT_TRUE(camera.lease.fresh());
  camera.voice.joined = camera.reach.streamed = true;
  camera.voice.after = turn.wall;
  camera.payment.ask(turn.now);
  camera.payment.hear({.grant = {10}, .granted = true}, lease::Version{10}, turn);
  ASSERT_TRUE(camera.payment.paid());

  pass(turn, 2s);
  leases.wake(cameras, turn);
  answer(asked().at(0), Outcome::renewed, 10);
  EXPECT_TRUE(camera.payment.paid()) << "a renewal is no new grant";
  EXPECT_TRUE(camera.voice.after);

  pass(turn, 2s);
  leases.wake(cameras, turn);
  answer(asked().at(0), Outcome::granted, 20);
  EXPECT_FALSE(camera.payment.paid());
  EXPECT_FALSE(camera.voice.joined || camera.reach.streamed || camera.voice.after);
}

TEST_F(LeasesTest, AFreshVersion_StaysFreshOverARenewal_UntilItIsGiven) {
  Camera& camera = acquire("c", 10);
  pass(turn, 2s);
  leases.wake(cameras, turn);
  answer(asked().at(0), Outcome::renewed, 10);
  EXPECT_TRUE(camera.lease.fresh()) << "no process was given it yet";
  camera.lease.right->fresh = false;
  pass(turn, 2s);
  leases.wake(cameras, turn);
  answer(asked().at(0), Outcome::renewed, 10);
  EXPECT_FALSE(camera.lease.fresh());
}

TEST_F(LeasesTest, ALostLease_TakesTheRightAway_AndIsToldToTheWorkerThatSpeaks) {
  for (WorkerNumber on : {0, 3}) {
    Camera& camera = acquire(fmt::format("c{}", on), 10);
    camera.voice.on = on;
    pass(turn, 2s);
    leases.wake(cameras, turn);
    answer(asked().at(0), Outcome::lost, 11);
    EXPECT_FALSE(camera.lease.right);
    EXPECT_EQ(camera.voice.lost, on != 0);
    EXPECT_TRUE(camera.idle());
    EXPECT_LE(camera.lease.try_at, turn.now + 1500ms) << "it may be free again soon";
    EXPECT_TRUE(noted(turn.take(), "camera.lost"));
  }
}

TEST_F(LeasesTest, NewsThatItIsAnothers_IsAskedAbout_NotBelieved) {
  Camera& camera = acquire("c", 10);
  leases.hear(LeaseNews{.camera = cam("c"), .free = true, .version = {10}}, cameras, turn);
  leases.wake(cameras, turn);
  EXPECT_TRUE(asked().empty()) << "it is as old as what is held";
  leases.hear(LeaseNews{.camera = cam("c"), .free = true, .version = {11}}, cameras, turn);
  EXPECT_TRUE(camera.holding());
  leases.wake(cameras, turn);
  EXPECT_EQ(asked().size(), 1u);
}

TEST_F(LeasesTest, NewsOfAFreeCamera_MakesTheLeastLoadedRunnerAskFirst) {
  Camera& camera = add_camera(cameras, "c");
  camera.lease.try_at = kNow + 10s;
  leases.hear(LeaseNews{.camera = cam("c"), .free = true, .version = {5}}, cameras, turn);
  EXPECT_EQ(camera.lease.try_at, turn.now) << "this one has nothing";
  for (int i = 0; i < turn.policy.capacity; ++i) add_held(cameras, fmt::format("h{}", i));
  leases.hear(LeaseNews{.camera = cam("c"), .free = true, .version = {5}}, cameras, turn);
  EXPECT_GE(camera.lease.try_at, turn.now + 150ms);
  EXPECT_LE(camera.lease.try_at, turn.now + 200ms);
}

TEST_F(LeasesTest, AListOfHolders_IsBelieved_UnlessTheNewsIsYounger) {
  Camera& camera = add_camera(cameras, "c");
  leases.hear(LeaseNews{.camera = cam("c"), .free = true, .version = {7}}, cameras, turn);
  leases.hear(HoldersHeard{{{cam("c"), {6}}}}, cameras);
  EXPECT_FALSE(camera.lease.elsewhere);
  leases.hear(HoldersHeard{{{cam("c"), {7}}}}, cameras);
  EXPECT_TRUE(camera.lease.elsewhere);
}

TEST_F(LeasesTest, ACameraThatNobodyElseCanReach_IsKept_AndOfferedLessAndLessOften) {
  Camera& camera = acquire("c", 10);
  Duration before{};
  for (int i = 0; i < 4; ++i) {
    camera.reach.letting_go = true;
    leases.feed(camera, lease::Unreachable{}, turn);
    answer(asked().at(0), Outcome::kept, 10);
    EXPECT_FALSE(camera.reach.letting_go);
    EXPECT_TRUE(camera.holding());
    EXPECT_GT(camera.reach.try_until - turn.now, before);
    before = camera.reach.try_until - turn.now;
    leases.wake(cameras, turn);  // it is renewed at once
    answer(asked().at(0), Outcome::renewed, 10);
  }
}

}  // namespace
}  // namespace weir::runner
