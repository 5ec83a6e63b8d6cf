#include "fleet_view.hpp"

#include <gtest/gtest.h>

namespace weir::apps {
namespace {

json::array parsed(const std::string& text) { return json::parse_text(text)->as_array(); }

const std::string kRunner = R"([{"runner_id":"r-1","status":"active","cordoned":false,"drain_mode":"none",
                                 "leases_held":1,"capacity_streams":9}])";

std::string camera(const std::string& id, const std::string& more = R"("enabled":true)") {
  return fmt::format(R"({{"camera_uuid":"{}",{}}})", id, more);
}
std::string lease(const std::string& camera, const std::string& stream) {
  return fmt::format(R"({{"camera_uuid":"{}","status":"active","runner_id":"r-1","stream":{}}})", camera, stream);
}
FleetView seen(const std::vector<std::string>& cameras, const std::vector<std::string>& leases,
               const std::string& runners = kRunner) {
  return fleet_view(parsed(fmt::format("[{}]", fmt::join(cameras, ","))),
                    parsed(fmt::format("[{}]", fmt::join(leases, ","))), parsed(runners));
}

TEST(FleetView, EverythingStreams_IsAllRight) {
  FleetView fleet = seen({camera("a"), camera("b", R"("enabled":false)"),
                          camera("c", R"("enabled":true,"processing":"cluster")")},
                         {lease("a", R"({"state":"STREAMING","age_s":2})")});
  EXPECT_EQ(verdict(fleet), "everything is all right: the one enabled camera streams");
  EXPECT_EQ(fleet.cameras, 3);
  EXPECT_EQ(fleet.enabled, 1);
  EXPECT_EQ(fleet.streaming, 1);
  EXPECT_EQ(verdict(seen({}, {})), "nothing to do: no camera is enabled");
}

TEST(FleetView, ACameraWithAMistakeInItsConfiguration_IsNotAllRight) {
  const std::string wrong = R"("enabled":true,"warnings":[
      {"code":"zone_tiny","field":"zones[0].polygon","message":"zone 1 …"},
      {"code":"label_unknown","field":"allow_labels[0]","message":"the camera …"}])";
  const std::string streams = R"({"state":"STREAMING","age_s":2})";
  FleetView fleet = seen({camera("a", wrong), camera("b", R"("enabled":true,"warnings":[])"), camera("c")},
                         {lease("a", streams), lease("b", streams), lease("c", streams)});
  EXPECT_EQ(verdict(fleet), "all 3 enabled cameras stream; 1 camera has a mistake in its configuration");
  ASSERT_EQ(fleet.mistakes.size(), 2u);
  EXPECT_EQ(fleet.mistakes[1].camera, "a");
  EXPECT_EQ(fleet.mistakes[1].code, "label_unknown");
  EXPECT_EQ(fleet.mistakes[1].field, "allow_labels[0]");
  fleet = seen({camera("a", wrong), camera("b", wrong), camera("c", R"("enabled":false,)" + wrong.substr(15))},
               {lease("a", streams)});
  EXPECT_EQ(verdict(fleet),
            "1 of 2 cameras does not stream: waits for a runner; 2 cameras have mistakes in their configuration");
}

TEST(FleetView, CamerasThatDoNotStream_HaveTheirReason) {
  FleetView fleet = seen(
      {camera("a"), camera("b"), camera("c"), camera("d"), camera("e"), camera("f"), camera("g")},
      {lease("a", R"({"state":"STREAMING","age_s":2})"), lease("b", R"({"state":"STREAMING","age_s":90})"),
       lease("c", R"({"state":"CONNECTING","age_s":1,"error":{"code":"TCP_REFUSED","detail":"nobody listens"}})"),
       lease("d", R"({"state":"CONNECTING","age_s":1})"), lease("e", "null"),
       lease("f", R"({"state":"DISCONNECTED","age_s":1,"error":{"code":"TCP_REFUSED","detail":"nobody at all"}})")});
  ASSERT_EQ(fleet.quiet.size(), 6u);
  EXPECT_EQ(fleet.quiet[0].reason, "its runner has said nothing about it for 90 s");
  EXPECT_EQ(fleet.quiet[1].reason, "TCP_REFUSED: nobody listens");
  EXPECT_EQ(fleet.quiet[1].runner, "r-1");
  EXPECT_EQ(fleet.quiet[2].reason, "connecting");
  EXPECT_EQ(fleet.quiet[3].reason, "its runner has not said anything about it yet");
  EXPECT_EQ(fleet.quiet[5].reason, "waits for a runner");
  EXPECT_EQ(fleet.quiet[5].runner, "");
  EXPECT_EQ(fleet.pending, 1);
  EXPECT_TRUE(verdict(fleet).starts_with("6 of 7 cameras do not stream: 2 TCP_REFUSED, 1 connecting, "))
      << verdict(fleet);
}

TEST(FleetView, StreamThatNobodyLooksAt_IsNotAllRight) {
  const char* blind = R"({"state":"STREAMING","age_s":2,"error":{"code":"MODEL_ERROR","detail":"no such file"}})";
  FleetView fleet = seen({camera("a"), camera("b")}, {lease("a", R"({"state":"STREAMING","age_s":2})"), lease("b", blind)});
  EXPECT_EQ(fleet.streaming, 2);
  EXPECT_EQ(fleet.quiet.size(), 0u);
  ASSERT_EQ(fleet.blind.size(), 1u);
  EXPECT_EQ(fleet.blind[0].reason, "MODEL_ERROR: no such file");
  EXPECT_EQ(verdict(fleet), "all 2 enabled cameras stream; nobody looks at 1 stream: MODEL_ERROR");
  fleet = seen({camera("a"), camera("b")}, {lease("a", R"({"state":"CONNECTING","age_s":2})"), lease("b", blind)});
  EXPECT_EQ(verdict(fleet), "1 of 2 cameras does not stream: connecting; nobody looks at 1 stream: MODEL_ERROR");
}

TEST(FleetView, CamerasThatAreLookedAtTooSeldom_AreNotAllRight) {
  auto slow = [](const char* looked) {
    return fmt::format(R"({{"state":"STREAMING","age_s":2,"looked_fps":{},"wanted_fps":6,
                            "error":{{"code":"OVERLOADED","detail":"looked at too seldom"}}}})", looked);
  };
  FleetView fleet = seen({camera("a"), camera("b")}, {lease("a", slow("2.7")), lease("b", R"({"state":"STREAMING","age_s":2})")});
  EXPECT_EQ(verdict(fleet),
            "all 2 enabled cameras stream; 1 camera is looked at less often than wanted: 2.7 of 6.0 a second");
  fleet = seen({camera("a"), camera("b")}, {lease("a", slow("2.7")), lease("b", slow("1.3"))});
  EXPECT_EQ(verdict(fleet), "all 2 enabled cameras stream; 2 cameras are looked at less often than wanted: 1.3 of 6.0 a "
                            "second the worst");
  EXPECT_EQ(fleet.streaming, 2);
  const std::string young = R"({"state":"STREAMING","age_s":1,"looked_fps":2,"wanted_fps":6})";
  EXPECT_EQ(seen({camera("a")}, {lease("a", young)}).slow.size(), 1u) << "before its worker is sure";
  auto begun = [](int for_s) { return fmt::format(R"({{"state":"STREAMING","age_s":1,"for_s":{}}})", for_s); };
  fleet = seen({camera("a"), camera("b")}, {lease("a", begun(2)), lease("b", begun(60))});
  EXPECT_EQ(verdict(fleet), "all 2 enabled cameras stream; 1 camera has just begun, and how often it is looked at is known in "
                            "a few seconds") << "a program of another make never says it";
  const std::string one_missed = R"({"state":"STREAMING","age_s":1,"looked_fps":0.6,"wanted_fps":1})";
  EXPECT_TRUE(seen({camera("a")}, {lease("a", one_missed)}).slow.empty());
}

TEST(FleetView, WhatARunnerSaysOfItsOwnTrouble_IsTheReason) {
  const std::string runner = R"([{"runner_id":"r-1","status":"active","cordoned":false,"drain_mode":"none","leases_held":4,
    "capacity_streams":9,"heartbeat":{"waiting":[{"camera_uuid":"a","reason":"budget"},{"camera_uuid":"b","reason":"budget"},
    {"camera_uuid":"c","reason":"not_answering","for_s":3.4},{"camera_uuid":"d","reason":"budget"}]}}])";
  std::vector<std::string> cameras, leases;
  for (const char* id : {"a", "b", "c"}) {
    cameras.push_back(camera(id, R"("enabled":true,"site_id":"s1")"));
    leases.push_back(lease(id, id[0] == 'c' ? R"({"state":"STREAMING","age_s":4})" : "null"));
  }
  cameras.push_back(camera("d", R"("enabled":true,"site_id":"s2")"));
  leases.push_back(lease("d", "null"));
  auto list = [](const std::vector<std::string>& items) { return parsed(fmt::format("[{}]", fmt::join(items, ","))); };
  FleetView fleet = fleet_view(list(cameras), list(leases), parsed(runner),
                               parsed(R"([{"site_id":"s1","tokens":0.5,"refill_rate":30},
                                          {"site_id":"s2","tokens":0,"refill_rate":0}])"));
  ASSERT_EQ(fleet.quiet.size(), 4u);
  EXPECT_EQ(fleet.quiet[0].reason, "waits for its site's budget, about 1 s");
  EXPECT_EQ(fleet.quiet[1].reason, "waits for its site's budget, about 3 s");
  EXPECT_EQ(fleet.quiet[2].reason, "its worker has not answered for 3 s and is being replaced") << "STREAMING was before";
  EXPECT_EQ(fleet.quiet[3].reason, "waits for its site's budget, which gives none: weir site budget s2");
  EXPECT_EQ(verdict(fleet), "4 of 4 cameras do not stream: 3 waiting for their site's budget, 1 their worker does "
                            "not answer");
  EXPECT_TRUE(any_waits_for_budget(parsed(runner)));
}

TEST(FleetView, ARunnerThatDoesNotKeepUp_IsWhyACameraWaits) {
  const std::string runner = R"([{"runner_id":"r-1","status":"active","cordoned":false,"drain_mode":"none","leases_held":4,
    "capacity_streams":9,"heartbeat":{"why_not_acquiring":"3 of its cameras are looked at less often than wanted"}}])";
  EXPECT_EQ(verdict(seen({camera("a")}, {}, runner)),
            "1 of 1 camera does not stream: no runner takes further cameras: r-1: 3 of its cameras are looked at less "
            "often than wanted");
}

TEST(FleetView, PendingCameras_SayWhatKeepsRunnersFromThem) {
  auto why = [](const std::string& runners) { return verdict(seen({camera("a")}, {}, runners)); };
  const std::string one =
      R"([{{"status":"{}","cordoned":{},"drain_mode":"{}","leases_held":{},"capacity_streams":4}}])";
  auto runner = [&](const char* status, bool cordoned, const char* drain, int held) {
    return fmt::format(fmt::runtime(one), status, cordoned, drain, held);
  };
  EXPECT_EQ(why("[]"), "1 of 1 camera does not stream: no runner has registered");
  EXPECT_EQ(why(runner("silent", false, "none", 0)), "1 of 1 camera does not stream: no runner is alive");
  EXPECT_EQ(why(runner("active", true, "none", 0)),
            "1 of 1 camera does not stream: every live runner drains or is cordoned");
  EXPECT_EQ(why(runner("active", false, "soft", 0)),
            "1 of 1 camera does not stream: every live runner drains or is cordoned");
  EXPECT_EQ(why(runner("active", false, "none", 4)), "1 of 1 camera does not stream: every runner is full");
  EXPECT_EQ(why(runner("active", false, "none", 3)), "1 of 1 camera does not stream: waits for a runner");
}

TEST(FleetView, Drain_SaysWhoWaits_AndForHowManyThereIsNoRoom) {
  auto runner = [](const char* id, const char* status, const char* drain, int held, const char* more = "") {
    return *json::parse_text(fmt::format(R"({{"runner_id":"{}","status":"{}","cordoned":false,"drain_mode":"{}",
      "leases_held":{},"capacity_streams":8{}}})", id, status, drain, held, more));
  };
  EXPECT_EQ(drain_sentence(runner("edge-1", "silent", "hard", 6)),
            "edge-1 is silent: the order waits until it is back");
  EXPECT_EQ(drain_sentence(runner("edge-1", "active", "hard", 6)), "edge-1 lets go of all its cameras at once");
  EXPECT_TRUE(drain_sentence(runner("edge-1", "active", "soft", 6)).ends_with("weir lease list --runner edge-1"));
  json::value own = runner("edge-1", "active", "soft", 6);
  json::array others{own, runner("silent", "silent", "none", 0), runner("drains", "active", "soft", 0),
                     runner("bound", "active", "none", 0, R"(,"site_id":"s")"), runner("edge-2", "active", "none", 4)};
  EXPECT_EQ(drain_warning(own, others), "the others have room for 4 of its 6 cameras");
  EXPECT_EQ(drain_warning(runner("edge-1", "silent", "soft", 6), others), "");
  others.push_back(runner("edge-3", "active", "none", 6));
  EXPECT_EQ(drain_warning(own, others), "");
}

TEST(FleetView, RunnersBoundElsewhere_DoNotCount) {
  auto runner = [](const char* id, const char* bound, const char* status, const char* drain, int held) {
    return fmt::format(R"({{"runner_id":"{}",{}"status":"{}","cordoned":false,"drain_mode":"{}","leases_held":{},
                           "capacity_streams":4}})", id, bound, status, drain, held);
  };
  auto why = [](const std::vector<std::string>& runners) {
    return seen({camera("a", R"("enabled":true,"tenant_id":"t-1","site_id":"north")")}, {},
                fmt::format("[{}]", fmt::join(runners, ","))).quiet.at(0).reason;
  };
  const std::string south = runner("r-s", R"("tenant_id":"t-1","site_id":"south",)", "active", "none", 0);
  const std::string foreign = runner("r-f", R"("tenant_id":"t-2",)", "active", "none", 0);
  EXPECT_EQ(why({south, foreign}), "no live runner may take cameras of site north");
  EXPECT_EQ(why({south, runner("r-n", R"("site_id":"north",)", "silent", "none", 0)}),
            "no live runner may take cameras of site north: r-n may, but is silent");
  EXPECT_EQ(why({south, runner("r-n", R"("site_id":"north",)", "active", "soft", 0)}),
            "every live runner that may take it drains or is cordoned");
  EXPECT_EQ(why({south, runner("r-n", "", "active", "none", 4)}),
            "every runner that may take it is full: it has room for 4 cameras; start another one, or let r-n take more: "
            "weir node capacity r-n N");
  EXPECT_EQ(why({runner("r-1", "", "active", "none", 4), runner("r-2", "", "active", "none", 4)}),
            "every runner is full: the 2 have room for 8 cameras; start another one, or let r-1 take more: "
            "weir node capacity r-1 N");
  EXPECT_EQ(why({south, runner("r-n", R"("tenant_id":"t-1",)", "active", "none", 3)}), "waits for a runner");
}

}  // namespace
}  // namespace weir::apps
