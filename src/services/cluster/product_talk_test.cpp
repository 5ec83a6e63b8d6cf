#include "product_talk.hpp"

#include <gtest/gtest.h>

namespace weir::cluster {
namespace {

DetectionSeen seen(const std::string& subscription, const std::string& id) {
  ImageDetection detection{.subscription = *Identifier::parse(subscription),
                           .timestamp = *from_iso("2026-01-31T09:05:07.123Z"), .detection = {.car_brand = "Fiat"},
                           .model_id = 42, .model_name = "vehicles-v2"};
  return {.stream_id = id, .worker = "ws://a:8000", .detection = std::move(detection)};
}

TEST(ProductTalk, EveryNotice_IsAMessage) {
  ProductTalk talk({});
  EXPECT_EQ(talk.greeting(), R"({"type":"listening","subscriptionIdentifiers":null,"events":true})");
  EXPECT_EQ(talk.write(seen("d1;c1", "17-0")),
            R"({"type":"detection","streamId":"17-0","subscriptionIdentifier":"d1;c1",)"
            R"("timestamp":"2026-01-31T09:05:07.123Z",)"
            R"("data":{"detection":{"carBrand":"Fiat"},"modelId":42,"modelName":"vehicles-v2"}})");
  EXPECT_NE(talk.write(seen("d1;c1", ""))->find(R"("streamId":null)"), std::string::npos) << "Redis is away";
  EXPECT_EQ(talk.write(ListeningFrom{"16-9"}), R"({"type":"position","streamId":"16-9"})");
  EXPECT_EQ(talk.write(DetectionsLost{}), R"({"type":"gap"})");
  EXPECT_EQ(talk.write(ClusterEvent{"worker:online", {{"url", "ws://a:8000"}}}),
            R"({"type":"event","event":"worker:online","payload":{"url":"ws://a:8000"}})");
  EXPECT_EQ(talk.write(SessionPatched{7, json::object{{"plate", "AB 1"}}}),
            R"({"type":"patchSession","sessionId":7,"data":{"plate":"AB 1"}})");
}

TEST(ProductTalk, AProductHearsTheSubscriptionsThatItNames_UntilItNamesOthers) {
  ProductTalk talk({.subscriptions = {{"d1;c1"}}});
  auto result_of = [](const char* id) { return ClusterEvent{"worker:detection_result", {{"cameraId", id}}}; };
  EXPECT_TRUE(talk.write(seen("d1;c1", "1-0")));
  EXPECT_TRUE(talk.write(result_of("d1;c1")));
  EXPECT_FALSE(talk.write(seen("d2;c1", "2-0")));
  EXPECT_FALSE(talk.write(result_of("d2;c1")));
  EXPECT_TRUE(talk.write(ClusterEvent{"worker:online", {}})) << "of the whole cluster";
  EXPECT_EQ(talk.listen_to({{"d2;c1", "d3;c1"}}),
            R"({"type":"listening","subscriptionIdentifiers":["d2;c1","d3;c1"],"events":true})");
  EXPECT_FALSE(talk.write(seen("d1;c1", "3-0")));
  EXPECT_TRUE(talk.write(seen("d2;c1", "4-0")));
  talk.listen_to(std::nullopt);
  EXPECT_TRUE(talk.write(seen("d1;c1", "5-0")));
  ProductTalk none({.subscriptions = {std::set<std::string>()}, .events = false});
  EXPECT_FALSE(none.write(seen("d1;c1", "1-0")));
  EXPECT_FALSE(none.write(ClusterEvent{"worker:online", {}}));
  EXPECT_TRUE(none.write(SessionPatched{7, nullptr})) << "somebody must answer it";
  EXPECT_TRUE(none.write(DetectionsLost{}));
}

TEST(ProductTalk, WhoHearsNothingForLong_IsToldHowFarTheClusterHasCome) {
  ProductTalk talk({.subscriptions = {{"d1;c1"}}});
  int positions = 0;
  for (int n = 1; n <= 3 * ProductTalk::kPositionEvery; ++n) {
    auto words = talk.write(seen("d2;c2", fmt::format("{}-0", n)));
    if (!words) continue;
    ++positions;
    EXPECT_EQ(*words, fmt::format(R"({{"type":"position","streamId":"{}-0"}})", n));
  }
  EXPECT_EQ(positions, 3);
}

TEST(ProductTalk, WhatAProductSays_IsRead_AndTheRestIsRefusedWithASentence) {
  auto all = read_product_message(R"({"type":"listen","payload":{"subscriptionIdentifiers":null}})");
  ASSERT_TRUE(all);
  EXPECT_FALSE(std::get<Listen>(*all).subscriptions);
  auto some = read_product_message(R"({"type":"listen","payload":{"subscriptionIdentifiers":["d1;c1"]}})");
  ASSERT_TRUE(some);
  EXPECT_EQ(*std::get<Listen>(*some).subscriptions, std::set<std::string>{"d1;c1"});
  auto answer = read_product_message(
      R"({"type":"patchSessionResult","payload":{"sessionId":7,"success":true,"message":"done"}})");
  ASSERT_TRUE(answer);
  EXPECT_TRUE(std::get<PatchSessionResult>(*answer) == (PatchSessionResult{7, true, "done"}));
  auto refusal = [](std::string_view text) {
    auto read = read_product_message(text);
    return read ? "accepted" : write_refusal(read.error());
  };
  for (const char* strange : {"", "not JSON", "[1]", "7", R"({"type":7})", R"({"type":"subscribe","payload":{}})", "{}",
                              R"({"type":"listen"})", R"({"type":"listen","payload":[]})",
                              R"({"type":"listen","payload":{"subscriptionIdentifiers":"d1;c1"}})",
                              R"({"type":"patchSessionResult","payload":{"success":true}})",
                              R"({"type":"patchSessionResult","sessionId":7,"success":true})"})
    EXPECT_TRUE(refusal(strange).starts_with(R"({"type":"error","code":)")) << strange << " " << refusal(strange);
  EXPECT_EQ(refusal(R"({"type":"requestState"})"),
            R"({"type":"error","code":"bad_field","message":"type must be one of: listen, patchSessionResult"})");
  EXPECT_EQ(refusal(R"({"type":"listen","payload":{"subscriptionIdentifiers":["d1;c1;x"]}})"),
            R"({"type":"error","code":"bad_subscription_identifier","message":"Invalid subscription identifier format: )"
            R"(it must be displayId;cameraId"})");
}

}  // namespace
}  // namespace weir::cluster
