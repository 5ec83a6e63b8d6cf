#include "model_board.hpp"

#include <gtest/gtest.h>

namespace weir::control_plane {
namespace {

using Labels = std::vector<std::string>;

Runner runner(const std::string& id, std::vector<ModelLabels> models, const std::string& tenant = "",
              bool live = true) {
  Runner out{.id = RunnerId::trusted(id), .tenant = TenantId::trusted(tenant)};
  out.models = std::move(models);
  out.live = live;
  return out;
}

camera::Config camera_with(camera::Model model, const std::string& tenant = "t-1") {
  camera::Config config;
  config.tenant = TenantId::trusted(tenant);
  config.model = std::move(model);
  return config;
}

class Models : public testing::Test {
 protected:
  std::optional<Labels> labels(camera::Model model, const std::string& tenant = "t-1") const {
    const Labels* found = board.labels_for(camera_with(std::move(model), tenant));
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  ModelBoard board;
};

TEST_F(Models, WhatNobodySaid_IsUnknown) {
  EXPECT_EQ(labels({}), std::nullopt);
  board.learn({runner("r-1", {{"tflite", "b", false, {"x"}}})});
  EXPECT_EQ(labels({}), std::nullopt) << "b is nobody's default";
  EXPECT_EQ(labels({"tflite", "b"}), Labels{"x"});
  EXPECT_EQ(labels({"onnx", "b"}), std::nullopt);
  EXPECT_EQ(labels({"none", ""}), std::nullopt);
}

TEST_F(Models, OfSeveralRunners_TheLabelsCountTogether) {
  board.learn({runner("r-1", {{"tflite", "a", true, {"person", "car"}}, {"hog", "", true, {"person"}}}),
               runner("r-2", {{"tflite", "a", true, {"person", "bus"}}})});
  EXPECT_EQ(labels({}), (Labels{"bus", "car", "person"}));
  EXPECT_EQ(labels({"hog", ""}), Labels{"person"});
  board.add(runner("r-3", {{"tflite", "a", true, {"zebra"}}}));
  EXPECT_EQ(labels({}), (Labels{"bus", "car", "person", "zebra"}));
  json::array list = board.list({});
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].at("detector"), "hog");
  EXPECT_EQ(list[1].at("name"), "a");
  EXPECT_EQ(list[1].at("default"), true);
  EXPECT_EQ(list[1].at("runners"), 3);
  board.learn({});
  EXPECT_EQ(labels({}), std::nullopt) << "who was removed says nothing any more";
}

TEST_F(Models, SilentRunners_AreAskedWhereNoLiveOneKnows) {
  board.learn({runner("gone", {{"tflite", "a", true, {"old"}}, {"onnx", "b", true, {"only here"}}}, "", false),
               runner("r-1", {{"tflite", "a", true, {"new"}}})});
  EXPECT_EQ(labels({}), Labels{"new"});
  EXPECT_EQ(labels({"onnx", ""}), Labels{"only here"});
}

TEST_F(Models, ATenant_SeesItsOwnRunnersAndThoseOfAll) {
  board.learn({runner("r-all", {{"tflite", "a", true, {"person"}}}),
               runner("r-2", {{"tflite", "a", true, {"forklift"}}, {"onnx", "secret", false, {"prototype"}}}, "t-2")});
  EXPECT_EQ(labels({}, "t-1"), Labels{"person"});
  EXPECT_EQ(labels({}, "t-2"), Labels{"forklift"});
  EXPECT_EQ(labels({"onnx", "secret"}, "t-1"), std::nullopt);
  EXPECT_EQ(board.list(TenantId::trusted("t-1")).size(), 1u);
  EXPECT_EQ(board.list(TenantId::trusted("t-2")).size(), 2u);
  EXPECT_EQ(board.list({}).size(), 2u);
}

TEST_F(Models, TheStoreIsAsked_NowAndThen) {
  Instant now{};
  EXPECT_TRUE(board.must_ask(now));
  EXPECT_FALSE(board.must_ask(now + 9s)) << "asked for already";
  EXPECT_TRUE(board.must_ask(now + 10s));
}

}  // namespace
}  // namespace weir::control_plane
