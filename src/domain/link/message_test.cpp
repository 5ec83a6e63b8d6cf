#include "weir/link/message.hpp"

#include <gtest/gtest.h>

namespace weir::link {
namespace {

LeaseGrant lease(const char* camera) {
  return {.camera = CameraId::trusted(camera),
          .version = {7},
          .tenure = {BootId::trusted("b"), {6}},
          .valid_until = Instant(123456us),
          .after = from_iso("2026-01-31T09:05:07.123456Z")};
}
std::vector<CameraId> names(std::initializer_list<const char*> all) {
  std::vector<CameraId> out;
  for (const char* each : all) out.push_back(CameraId::trusted(each));
  return out;
}
json::value sent(const Message& message) { return *json::parse_text(json::to_text(write_message(message))); }

TEST(Message, EveryKind_HasTheRouteAndTheNamesThatOlderWorkersKnow) {
  Source source;
  source.config.camera = CameraId::trusted("a");
  source.config.rtsp_url = Secret("rtsp://h/1");
  source.lease = lease("a");
  EXPECT_EQ(route_of(ChangeSources{}), "/sources");
  EXPECT_EQ(route_of(Leases{}), "/leases");
  EXPECT_EQ(route_of(Activate{}), "/activate");
  EXPECT_EQ(route_of(Silence{}), "/silence");
  EXPECT_EQ(route_of(Drain{}), "/drain");
  json::value add = sent(ChangeSources{.add = {source}});
  EXPECT_EQ(add.at("add").at(0).at("lease").at("version").as_int64(), 7);
  EXPECT_FALSE(add.as_object().contains("remove"));
  EXPECT_EQ(json::to_text(sent(ChangeSources{.remove = names({"a", "b"})})), R"({"remove":["a","b"]})");
  EXPECT_EQ(json::to_text(sent(Leases{.lost = names({"a"})})), R"({"lost":["a"]})");
  EXPECT_EQ(json::to_text(sent(Leases{.base_url = "http://h", .token = Secret("t")})),
            R"({"base_url":"http://h","token":"t"})");
  EXPECT_EQ(json::to_text(sent(Silence{names({"a"})})), R"({"cameras":["a"]})");
  EXPECT_EQ(json::to_text(sent(Drain{})), "{}");
}

TEST(Message, WhatAManagerWrites_IsWhatAWorkerReads) {
  auto leases = read_lease_message(sent(Leases{{lease("a")}, names({"b"}), "http://h", Secret("t")}));
  ASSERT_TRUE(leases) << leases.error().message;
  EXPECT_EQ(leases->items[0].valid_until, Instant(123456us));
  EXPECT_TRUE(leases->items[0].extends);
  EXPECT_EQ(leases->lost, names({"b"}));
  EXPECT_EQ(leases->base_url, "http://h");
  EXPECT_EQ(leases->token, Secret("t"));
  auto activate = read_activate(sent(Activate{{lease("a")}}));
  ASSERT_TRUE(activate) << activate.error().message;
  EXPECT_EQ(activate->items[0].after, lease("a").after);
  EXPECT_FALSE(activate->items[0].extends);
  auto silence = read_silence(sent(Silence{names({"a", "b"})}));
  ASSERT_TRUE(silence);
  EXPECT_EQ(silence->cameras, names({"a", "b"}));
  auto change = read_change_sources(sent(ChangeSources{.remove = names({"c"})}), 6);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->remove, names({"c"}));
  EXPECT_TRUE(change->add.empty());
}

TEST(Message, OfAWrongType_IsRefused) {
  for (const char* text : {R"({"add":5})", R"({"add":[5]})", R"({"remove":"a"})", R"({"remove":[5]})"})
    EXPECT_FALSE(read_change_sources(*json::parse_text(text), 6)) << text;
  for (const char* text : {R"({"items":5})", R"({"items":[{}]})", R"({"lost":"a"})"})
    EXPECT_FALSE(read_lease_message(*json::parse_text(text))) << text;
  for (const char* text : {R"({})", R"([])", R"({"items":null})"})
    EXPECT_FALSE(read_activate(*json::parse_text(text))) << text;
  EXPECT_FALSE(read_silence(*json::parse_text(R"({"cameras":5})")));
}

TEST(Message, Answer_SaysWhatWasDone_AndWhenEachSilencedCameraWasLastSpokenFor) {
  std::vector<LastWord> said{{CameraId::trusted("a"), from_iso("2026-01-31T09:05:07.123456Z")},
                             {CameraId::trusted("b")}};
  Message silence = Silence{names({"a", "b"})}, remove = ChangeSources{.remove = names({"a", "b"})};
  for (const Message& message : {silence, remove}) {
    auto back = read_answer(message, json::to_text(write_answer(message, said)));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, said);
  }
  EXPECT_EQ(json::to_text(write_answer(Leases{{lease("a")}, names({"b", "c"})})), R"({"leases":1,"lost":2})");
  EXPECT_EQ(json::to_text(write_answer(Activate{{lease("a")}})), R"({"activated":1})");
  EXPECT_EQ(json::to_text(write_answer(Drain{})), R"({"draining":true})");
  EXPECT_TRUE(read_answer(Drain{}, "anything")) << "its status says it all";
}

TEST(Message, AnswerThatCannotBeRead_IsAnErrorAndNoException) {
  Message silence = Silence{names({"a"})};
  for (const char* text : {"", "ok", "[]", "{}", R"({"silent":5})", R"({"silent":[5]})", R"({"silent":[{}]})",
                           R"({"silent":[{"camera_uuid":5}]})", R"({"silent":[{"camera_uuid":"a","last_capture":5}]})",
                           R"({"silent":[{"camera_uuid":"a","last_capture":"noon"}]})",
                           R"({"silent":[{"camera_uuid":"a")"})
    EXPECT_FALSE(read_answer(silence, text)) << text;
}

}  // namespace
}  // namespace weir::link
