#include "testing.hpp"

namespace weir::orchestrator {
namespace {

constexpr const char* kWorker = "demo.worker";
constexpr const char* kForward = "demo.forward";

TEST_F(OrchestratorTest, APublisher_GetsOneWorker_AndALongAbsenceEndsIt) {
  Orchestrator& orchestrator = start();
  publish("demo", "p1");
  orchestrator.hear(hook("demo", "p1"), true);
  ASSERT_TRUE(within(1s, [&] { return host_.living(kWorker) != nullptr; }));
  worker_publishes("demo");
  pass(5s);
  EXPECT_EQ(state_of(orchestrator, "demo"), "running");
  EXPECT_EQ(host_.all.size(), 1u) << "no forwarder was wished for";
  EXPECT_GT(host_.living(kWorker)->term.valid_until, clock_.now() + 15s) << "the deadline moves on with the lease";

  media_.paths.clear();
  orchestrator.hear(hook("demo", "p1"), false);
  pass(5s);
  EXPECT_NE(host_.living(kWorker), nullptr) << "within the grace";
  EXPECT_TRUE(within(20s, [&] { return host_.living(kWorker) == nullptr && state_of(orchestrator, "demo") == "idle"; }));
  auto lease = ask(store_.show(SubjectId::trusted("demo"), {}));
  EXPECT_TRUE(lease->row.released);
  EXPECT_EQ(plane_.states_of("demo"), "starting.running.stopping.stopped.") << "each under the stream's lease";
}

TEST_F(OrchestratorTest, AStreamThatIsForgotten_LeavesNothing_AndBeginsAnewWhenItComesBack) {
  Orchestrator& orchestrator = start();
  for (int round = 1; round <= 3; ++round) {
    publish("demo", "p" + std::to_string(round));
    orchestrator.hear(hook("demo", "p" + std::to_string(round)), true);
    ASSERT_TRUE(within(2s, [&] { return host_.living(kWorker) != nullptr; })) << round;
    media_.paths.clear();
    ASSERT_TRUE(within(120s, [&] { return orchestrator.view(stream::StreamId::trusted("demo")).empty(); }))
        << round << json::to_text(orchestrator.view(stream::StreamId::trusted("demo")));
    EXPECT_EQ(host_.all.size(), static_cast<size_t>(round));
  }
}

TEST_F(OrchestratorTest, WishesThatCannotBeReadAtTheStart_AreTakenUpWhenTheyCan) {
  auto wished = StreamRecord{.id = SubjectId::trusted("demo"), .tenant = TenantId::trusted("t1"),
                             .site = SiteId::trusted("s1"),
                             .wishes = {{"forward", true}, {"destination", "rtmp://127.0.0.1/app/key"}}};
  ASSERT_TRUE(ask(store_.put_stream(std::move(wished))));
  Orchestrator& orchestrator = start();
  plane_.up = false;
  publish("demo", "p1");
  orchestrator.hear(hook("demo", "p1"), true);
  pass(3s);
  plane_.up = true;
  ASSERT_TRUE(within(10s, [&] { return host_.living(kWorker) != nullptr; }));
  worker_publishes("demo");
  EXPECT_TRUE(within(10s, [&] { return host_.living(kForward) != nullptr; })) << "as the operator wishes";
}

TEST_F(OrchestratorTest, AWorkerIsTold_WhereTheStreamsEventsBelong_AndInWhoseName) {
  auto known = StreamRecord{.id = SubjectId::trusted("known"), .tenant = TenantId::trusted("t1"),
                            .site = SiteId::trusted("s9")};
  ASSERT_TRUE(ask(store_.put_stream(std::move(known))));
  Orchestrator& orchestrator = start();
  for (const char* id : {"known", "demo"}) {
    publish(id, "p1");
    orchestrator.hear(hook(id, "p1"), true);
  }
  auto told = [&](const std::string& worker, std::string_view name) {
    auto document = *json::parse_text(host_.living(worker)->spec.document.reveal());
    return std::string(document.at(name).as_string());
  };
  ASSERT_TRUE(within(1s, [&] { return host_.living(kWorker) && host_.living("known.worker"); }));
  EXPECT_EQ(told(kWorker, "stream_site"), "s1") << "where this orchestrator puts what nobody has named";
  EXPECT_EQ(told("known.worker", "stream_tenant"), "t1");
  EXPECT_EQ(told("known.worker", "stream_site"), "s9");
  EXPECT_EQ(told(kWorker, "stream_owner"), "orc");
  EXPECT_EQ(host_.living(kWorker)->spec.unset, std::vector<std::string>{"STREAM_OWNER"})
      << "the environment would beat the document";
  ASSERT_TRUE(within(5s, [&] { return !plane_.published.empty(); }));
  EXPECT_TRUE(std::ranges::any_of(plane_.published, [](const event::Event& each) {
    return each.routing_key.ends_with(".t1.s9.known");
  })) << "a state is published under the stream's own key, too";
}

TEST_F(OrchestratorTest, AHookThatNeverCame_IsFoundByALook) {
  Orchestrator& orchestrator = start();
  publish("demo", "p1");
  ASSERT_TRUE(within(5s, [&] { return host_.living(kWorker) != nullptr; }));
  media_.paths.clear();
  EXPECT_TRUE(within(25s, [&] { return host_.living(kWorker) == nullptr; }));
  EXPECT_TRUE(within(5s, [&] { return state_of(orchestrator, "demo") == "idle"; }));
}

TEST_F(OrchestratorTest, HooksTwiceAndShuffled_StartNoSecondWorker_AndALateEndOfAnOldPublisherStopsNothing) {
  Orchestrator& orchestrator = start();
  publish("demo", "p2");
  for (int i = 0; i < 20; ++i) {
    orchestrator.hear(hook("demo", "p1"), true);
    orchestrator.hear(hook("demo", "p2"), true);
    orchestrator.hear(hook("demo", "p1"), false);
  }
  pass(40s);
  EXPECT_EQ(host_.named(kWorker).size(), 1u);
  EXPECT_NE(host_.living(kWorker), nullptr);
}

// The worker of an owner before, kept beyond its right: its stream must not be forwarded a second time.
TEST_F(OrchestratorTest, WhoPublishedOutBeforeTheWorker_IsKnown_AlsoWhereAListLackedIt) {
  stream::Wishes wishes;
  wishes.forward = true;
  wishes.destination = Secret("rtmp://cdn.example/app/key");
  file_[stream::StreamId::trusted("demo")] = wishes;
  media_.publish("live/demo/out", "theirs");
  media_.left_out = {"live/demo/out"};
  Orchestrator& orchestrator = start();
  publish("demo", "p1");
  orchestrator.hear(hook("demo", "p1"), true);
  ASSERT_TRUE(within(1s, [&] { return host_.living(kWorker) != nullptr; }));
  media_.left_out.clear();
  pass(5s);
  EXPECT_EQ(host_.living(kForward), nullptr);
  worker_publishes("demo");
  EXPECT_TRUE(within(2s, [&] { return host_.living(kForward) != nullptr; }));
}

TEST_F(OrchestratorTest, AForwarderStartsOnceOutIsThere_AndItsEndLeavesTheWorkerAlone) {
  stream::Wishes wishes;
  wishes.forward = true;
  wishes.destination = Secret("rtmp://cdn.example/app/canary-key");
  file_[stream::StreamId::trusted("demo")] = wishes;
  Orchestrator& orchestrator = start();
  publish("demo", "p1");
  orchestrator.hear(hook("demo", "p1"), true);
  ASSERT_TRUE(within(1s, [&] { return host_.living(kWorker) != nullptr; }));
  pass(3s);
  EXPECT_EQ(host_.living(kForward), nullptr) << "there is nothing to forward yet";
  worker_publishes("demo");
  ASSERT_TRUE(within(2s, [&] { return host_.living(kForward) != nullptr; }));
  EXPECT_NE(host_.living(kForward)->spec.document.reveal().find("canary-key"), std::string::npos);
  for (const auto& each : host_.all)
    for (const std::string& word : each->spec.command) EXPECT_EQ(word.find("canary-key"), std::string::npos) << word;

  std::int64_t first = host_.living(kForward)->version;
  host_.living(kForward)->end = 40;
  ASSERT_TRUE(within(10s, [&] { return host_.living(kForward) != nullptr; }));
  EXPECT_GT(host_.living(kForward)->spec.version, first) << "a version is used by one process";
  EXPECT_EQ(host_.named(kWorker).size(), 1u);
  EXPECT_TRUE(within(5s, [&] { return host_.living(kWorker)->version == host_.living(kForward)->version; }))
      << "the worker is told the version that the forwarder's start drew";
}

TEST_F(OrchestratorTest, AWorkerThatKeepsEnding_MakesTheStreamDegraded_WithItsLeaseAndAReason) {
  Orchestrator& orchestrator = start();
  publish("demo", "p1");
  orchestrator.hear(hook("demo", "p1"), true);
  for (int i = 0; i < 20; ++i) {
    if (within(40s, [&] { return host_.living(kWorker) != nullptr; })) host_.living(kWorker)->end = 50;
  }
  EXPECT_EQ(host_.named(kWorker).size(), 7u) << "one start and six restarts";
  boost::json::object view = orchestrator.view(stream::StreamId::trusted("demo"));
  EXPECT_FALSE(view.at("degraded").is_null()) << boost::json::serialize(view);
  EXPECT_FALSE(ask(store_.show(SubjectId::trusted("demo"), {}))->row.released);
  plane_.orders.push_back({SubjectId::trusted("demo"), "restart"});
  EXPECT_TRUE(within(5s, [&] { return host_.living(kWorker) != nullptr; })) << "an operator ends it";
}

TEST_F(OrchestratorTest, ARestartedOrchestratorOfTheSameBoot_AdoptsItsChildren_AndInterruptsNobody) {
  Orchestrator& first = start();
  publish("demo", "p1");
  first.hear(hook("demo", "p1"), true);
  ASSERT_TRUE(within(1s, [&] { return host_.living(kWorker) != nullptr; }));
  worker_publishes("demo");
  pass(5s);
  std::string run(first.view(stream::StreamId::trusted("demo")).at("run_id").as_string());
  std::int64_t version = host_.living(kWorker)->version;
  first.stop();
  pass(5s);

  Orchestrator& second = start();
  pass(6s);
  EXPECT_EQ(host_.all.size(), 1u);
  EXPECT_EQ(host_.all[0]->stops + host_.all[0]->kills, 0);
  EXPECT_EQ(state_of(second, "demo"), "running");
  EXPECT_EQ(second.view(stream::StreamId::trusted("demo")).at("run_id").as_string(), run);
  EXPECT_GT(host_.living(kWorker)->version, version) << "what it held is rotated before it is used";
  EXPECT_GT(host_.living(kWorker)->term.valid_until, clock_.now() + 15s);
}

TEST_F(OrchestratorTest, WhatHasNotChanged_IsToldOnceAMinute) {
  Orchestrator& orchestrator = start();
  publish("demo", "p1");
  orchestrator.hear(hook("demo", "p1"), true);
  ASSERT_TRUE(within(1s, [&] { return host_.living(kWorker) != nullptr; }));
  worker_publishes("demo");
  pass(10s);
  int before = plane_.tells;
  pass(5min);
  EXPECT_EQ(state_of(orchestrator, "demo"), "running");
  EXPECT_GE(plane_.tells - before, 4);
  EXPECT_LE(plane_.tells - before, 6);
}

TEST_F(OrchestratorTest, AHookThatComesBeforeTheChildrenAreAdopted_StartsNoSecondWorker) {
  Orchestrator& first = start();
  publish("demo", "p1");
  first.hear(hook("demo", "p1"), true);
  ASSERT_TRUE(within(1s, [&] { return host_.living(kWorker) != nullptr; }));
  pass(3s);
  first.stop();
  plane_.up = false;  // the records cannot be read yet
  Orchestrator& second = start();
  second.hear(hook("demo", "p1"), true);
  pass(3s);
  EXPECT_FALSE(second.ready());
  plane_.up = true;
  ASSERT_TRUE(within(5s, [&] { return state_of(second, "demo") == "running"; }));
  EXPECT_EQ(host_.all.size(), 1u);
  EXPECT_EQ(host_.all[0]->stops + host_.all[0]->kills, 0);
}

TEST_F(OrchestratorTest, AnotherOrchestrator_GetsTheStreamOnlyAfterTheFirstLetItGo) {
  Orchestrator& first = start();
  publish("demo", "p1");
  first.hear(hook("demo", "p1"), true);
  ASSERT_TRUE(within(1s, [&] { return host_.living(kWorker) != nullptr; }));
  auto of_first = host_.living(kWorker);
  Orchestrator& second = start("other", "b9");
  second.hear(hook("demo", "p1"), true);
  pass(20s);
  EXPECT_TRUE(other_host_.all.empty());
  EXPECT_NE(state_of(second, "demo"), "running");

  first.stop();                        // its host dies, with its children
  of_first->end = std::optional<int>();
  ASSERT_TRUE(within(40s, [&] { return other_host_.living(kWorker) != nullptr; }));
  EXPECT_GT(other_host_.living(kWorker)->spec.version, of_first->version);
}

TEST_F(OrchestratorTest, AStreamThatAnotherHas_IsForgottenWhenItsPublisherLeaves) {
  Orchestrator& first = start();
  publish("demo", "p1");
  first.hear(hook("demo", "p1"), true);
  ASSERT_TRUE(within(1s, [&] { return host_.living(kWorker) != nullptr; }));
  Orchestrator& second = start("other", "b9");
  second.hear(hook("demo", "p1"), true);
  pass(5s);
  media_.paths.clear();
  second.hear(hook("demo", "p1"), false);
  EXPECT_TRUE(within(30s, [&] { return state_of(second, "demo") == "idle"; })) << "it never had a lease to give up";
}

TEST_F(OrchestratorTest, AnExtensionThatIsUnderWayWhenItsChildEnds_DoesNoHarm) {
  Orchestrator& orchestrator = start();
  publish("demo", "p1");
  orchestrator.hear(hook("demo", "p1"), true);
  ASSERT_TRUE(within(1s, [&] { return host_.living(kWorker) != nullptr; }));
  FakeKept::extension_takes = 1s;
  pass(2100ms);  // the next renewal has begun to extend it
  host_.living(kWorker)->end = 50;
  pass(5s);
  FakeKept::extension_takes = {};
  EXPECT_TRUE(within(10s, [&] { return host_.living(kWorker) != nullptr; }));
}

TEST_F(OrchestratorTest, WhileThePlaneIsSilent_ChildrenKeepWhatStands_AndNobodyIsStarted) {
  Orchestrator& orchestrator = start();
  publish("demo", "p1");
  orchestrator.hear(hook("demo", "p1"), true);
  ASSERT_TRUE(within(5s, [&] { return host_.living("demo.worker") != nullptr; }));
  auto worker = host_.living("demo.worker");
  plane_.up = false;
  for (int i = 0; i < 24; ++i) {
    pass(5s);
    ASSERT_TRUE(worker->alive()) << i;
    ASSERT_GT(worker->term.keep_until, clock_.now()) << i;
    ASSERT_LT(worker->term.keep_until, clock_.now() + 30s) << "a dead orchestrator's child ends soon";
  }
  EXPECT_LT(worker->term.valid_until, clock_.now()) << "it may open no connection and publish no event";
  plane_.up = true;
  EXPECT_TRUE(within(15s, [&] { return worker->term.valid_until > clock_.now(); })) << "nobody took the lease meanwhile";
  EXPECT_TRUE(worker->alive());
  EXPECT_EQ(host_.named("demo.worker").size(), 1u);
}

TEST_F(OrchestratorTest, APlaneThatIsSilentForTheWholeGrace_EndsTheChildren) {
  Orchestrator& orchestrator = start();
  publish("demo", "p1");
  orchestrator.hear(hook("demo", "p1"), true);
  ASSERT_TRUE(within(5s, [&] { return host_.living("demo.worker") != nullptr; }));
  auto worker = host_.living("demo.worker");
  plane_.up = false;
  Instant begun = clock_.now();
  EXPECT_TRUE(within(400s, [&] { return !worker->alive(); }));
  EXPECT_GE(clock_.now(), begun + 290s);
  EXPECT_LE(worker->term.keep_until, begun + 330s);
}

TEST_F(OrchestratorTest, WhenTheLeaseIsRevoked_TheChildIsKilledAtOnce) {
  Orchestrator& orchestrator = start();
  publish("demo", "p1");
  orchestrator.hear(hook("demo", "p1"), true);
  ASSERT_TRUE(within(1s, [&] { return host_.living(kWorker) != nullptr; }));
  auto child = host_.living(kWorker);
  ASSERT_TRUE(ask(store_.revoke(SubjectId::trusted("demo"), {})));
  EXPECT_TRUE(within(5s, [&] { return child->kills > 0; }));
}

TEST_F(OrchestratorTest, AnOperatorsStop_WindsTheStreamDown_AndItsWishesSwitchForwardingOn) {
  Orchestrator& orchestrator = start();
  publish("demo", "p1");
  orchestrator.hear(hook("demo", "p1"), true);
  ASSERT_TRUE(within(1s, [&] { return host_.living(kWorker) != nullptr; }));
  worker_publishes("demo");
  pass(2s);
  StreamRecord wanted{.id = SubjectId::trusted("demo"), .tenant = TenantId::trusted("t1"), .site = SiteId::trusted("s1")};
  wanted.wishes = {{"forward", true}, {"destination", "rtmp://cdn.example/app/key"}};
  ASSERT_TRUE(ask(store_.put_stream(wanted)));
  plane_.orders.push_back({SubjectId::trusted("demo"), "wishes"});
  EXPECT_TRUE(within(5s, [&] { return host_.living(kForward) != nullptr; }));
  EXPECT_EQ(host_.named(kWorker).size(), 1u) << "the worker goes on";
  plane_.orders.push_back({SubjectId::trusted("demo"), "stop"});
  EXPECT_TRUE(within(5s, [&] { return !host_.living(kForward) && !host_.living(kWorker); }));
  pass(10s);
  EXPECT_EQ(host_.living(kWorker), nullptr) << "although somebody publishes";
}

}  // namespace
}  // namespace weir::orchestrator
