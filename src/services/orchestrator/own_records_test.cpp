#include "weir/orchestrator/own_records.hpp"

#include "testing.hpp"

namespace weir::orchestrator {
namespace {

using stream::Credentials;
using stream::StreamId;

class OwnRecordsTest : public OrchestratorTest {
 protected:
  static constexpr const char* kWorker = "demo.worker";
  static constexpr const char* kForward = "demo.forward";
  const StreamId demo_ = StreamId::trusted("demo");
  const lease::Home home_{TenantId::trusted("t1"), SiteId::trusted("s1")};
  static json::object wishes(bool forward) {
    return {{"forward", forward}, {"destination", "rtmp://cdn.example/app/canary"}};
  }
};

TEST_F(OwnRecordsTest, Wishes_CountFromThePublishersFirstMoment_AndWhileItPublishes_UntilTheyAreRemoved) {
  Orchestrator& orchestrator = start();
  OwnRecords records(orchestrator, &store_, home_);
  auto put = ask(records.put(demo_, wishes(true)));
  ASSERT_TRUE(put) << put.error().message;
  EXPECT_EQ(put->at("state"), "idle");
  EXPECT_EQ(put->at("tenant_id"), "t1");
  EXPECT_EQ(put->at("holder"), nullptr);
  publish("demo", "p1");
  orchestrator.hear(hook("demo", "p1"), true);
  ASSERT_TRUE(within(1s, [&] { return host_.living(kWorker) != nullptr; }));
  worker_publishes("demo");
  ASSERT_TRUE(within(5s, [&] { return host_.living(kForward) != nullptr; }));

  ASSERT_TRUE(ask(records.put(demo_, wishes(false))));
  EXPECT_TRUE(within(5s, [&] { return host_.living(kForward) == nullptr; }));
  auto held = ask(records.remove(demo_));
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().reason, "stream_not_empty");
  EXPECT_EQ(host_.named(kWorker).size(), 1u) << "the worker goes on";

  ASSERT_TRUE(ask(records.put(demo_, wishes(true))));
  media_.paths.erase("live/demo/in");
  orchestrator.hear(hook("demo", "p1"), false);
  ASSERT_TRUE(within(30s, [&] { return state_of(orchestrator, "demo") == "idle"; }));
  ASSERT_TRUE(ask(records.remove(demo_)));
  pass(100ms);
  publish("demo", "p2");
  orchestrator.hear(hook("demo", "p2"), true);
  ASSERT_TRUE(within(1s, [&] { return host_.living(kWorker) != nullptr; }));
  worker_publishes("demo");
  pass(5s);
  EXPECT_EQ(host_.living(kForward), nullptr) << "it is not forwarded to where nobody wishes it any more";
}

TEST_F(OwnRecordsTest, AKey_IsShownToThoseWhoMayOrder_AndTheListHasWhatRunsAndWhatIsWished) {
  Orchestrator& orchestrator = start();
  OwnRecords records(orchestrator, &store_, home_);
  ASSERT_TRUE(ask(records.put(demo_, wishes(true))));
  publish("live", "p1");
  orchestrator.hear(hook("live", "p1"), true);
  pass(100ms);
  for (Credentials credentials : {Credentials::shown, Credentials::redacted}) {
    bool shown = credentials == Credentials::shown;
    auto all = ask(records.list(credentials));
    ASSERT_TRUE(all);
    ASSERT_EQ(all->size(), 2u);
    EXPECT_EQ(all->at(0).at("stream_id"), "demo");
    EXPECT_EQ(json::to_text(all->at(0)).find("canary") != std::string::npos, shown) << all->at(0);
    EXPECT_EQ(all->at(1).at("holder"), "orc");
    auto one = ask(records.show(demo_, credentials));
    ASSERT_TRUE(one);
    EXPECT_EQ(json::to_text(*one).find("canary") != std::string::npos, shown) << *one;
  }
}

TEST_F(OwnRecordsTest, WhatCannotBeStored_IsRefused_AndWithAControlPlaneItIsSaidWhere) {
  Orchestrator& orchestrator = start();
  OwnRecords records(orchestrator, &store_, home_), none(orchestrator, nullptr, home_);
  for (json::object wrong : {json::object{{"forward", "yes"}}, json::object{{"tenant_id", 7}},
                             json::object{{"destination", "rtmp://cdn.example/app/***"}}})
    EXPECT_EQ(ask(records.put(demo_, wrong)).error().code, Errc::invalid) << wrong;
  EXPECT_EQ(ask(records.show(demo_, Credentials::shown)).error().code, Errc::not_found);
  EXPECT_EQ(ask(records.remove(demo_)).error().code, Errc::not_found);
  EXPECT_EQ(ask(none.put(demo_, wishes(true))).error().reason, "wishes_elsewhere");
  EXPECT_EQ(ask(none.remove(demo_)).error().reason, "wishes_elsewhere");
}

}  // namespace
}  // namespace weir::orchestrator
