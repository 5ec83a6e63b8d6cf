#include "ssd.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace weir::tflite {
namespace {

TEST(SsdLayout, IsToldByShapes) {
  using Shapes = std::vector<std::vector<int>>;
  EXPECT_EQ(recognise({{1, 25, 4}, {1, 25}, {1, 25}, {1}}), (Layout{0, 1, 2, 3, 25})) << "the operator's order";
  EXPECT_EQ(recognise({{1, 10}, {1, 10, 4}, {1}, {1, 10}}), (Layout{1, 3, 0, 2, 10})) << "the newer exporters' order";
  const Shapes unknown[] = {
      {},
      {{1, 25, 4}, {1, 25}, {1, 25}},        // no count
      {{1, 25, 4}, {1, 25}, {1, 24}, {1}},   // of different lengths
      {{1, 25, 4}, {1, 25}, {1, 25}, {25}},  // a count of many
      {{2, 25, 4}, {1, 25}, {1, 25}, {1}},   // a batch
      {{1, 0, 4}, {1, 0}, {1, 0}, {1}},      // no room
      {{1, 25}, {1, 25}, {1, 25, 4}, {1}},   // an order that nobody uses
      {{1, 25200, 85}},                      // a YOLO
      {{}, {}, {}, {}},
  };
  for (const Shapes& shapes : unknown) EXPECT_EQ(recognise(shapes), std::nullopt) << shapes.size();
}

const std::vector<std::string> kLabels = {"person", "bicycle", "???", "", "car"};

std::vector<Detection> read(std::vector<float> boxes, std::vector<float> classes, std::vector<float> scores,
                            float count, Region region = {0, 0, 200, 100}, double min_score = 0.3) {
  return read_outputs({boxes, classes, scores, count}, kLabels, region, min_score);
}

TEST(SsdOutputs, BecomeBoxesInThePicture) {
  auto found = read({0.1F, 0.25F, 0.5F, 0.5F, 0, 0, 1, 1}, {0, 4}, {0.75F, 0.5F}, 2);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].label, "person");
  EXPECT_EQ(found[0].score, 0.75);
  EXPECT_NEAR(found[0].box.x1, 50, 1e-4);
  EXPECT_NEAR(found[0].box.y1, 10, 1e-4);
  EXPECT_NEAR(found[0].box.x2, 100, 1e-4);
  EXPECT_NEAR(found[0].box.y2, 50, 1e-4);
  EXPECT_EQ(found[1], (Detection{"car", 0.5, {0, 0, 200, 100}}));
}

TEST(SsdOutputs, OfARegionStandInTheWholePicture_AndAreClippedToIt) {
  auto found = read({-0.5F, 0.5F, 1.5F, 1.25F}, {0}, {0.9F}, 1, {300, 40, 100, 60});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].box, (Box{350, 40, 400, 100}));
}

TEST(SsdOutputs, ThatMeanNothingAreLeftOut) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> box = {0.1F, 0.1F, 0.5F, 0.5F};
  EXPECT_EQ(read(box, {0}, {0.5F}, 1).size(), 1u);
  EXPECT_EQ(read(box, {0}, {0.29F}, 1).size(), 0u) << "less than asked for";
  EXPECT_EQ(read(box, {0}, {0.5F}, 0).size(), 0u) << "behind the count";
  EXPECT_EQ(read(box, {0}, {0.5F}, kNan).size(), 0u);
  EXPECT_EQ(read(box, {0}, {0.5F}, 1e9F).size(), 1u) << "a count beyond the room";
  for (float index : {2.0F, 3.0F, 5.0F, -1.0F, 1e9F, kNan})
    EXPECT_EQ(read(box, {index}, {0.5F}, 1).size(), 0u) << index;
  EXPECT_EQ(read(box, {0}, {kNan}, 1).size(), 0u);
  for (float edge : {kNan, kInf, -kInf}) EXPECT_EQ(read({0.1F, edge, 0.5F, 0.5F}, {0}, {0.5F}, 1).size(), 0u);
  EXPECT_EQ(read({0.5F, 0.1F, 0.1F, 0.5F}, {0}, {0.5F}, 1).size(), 0u) << "upside down";
  EXPECT_EQ(read({0.1F, 1.1F, 0.5F, 1.5F}, {0}, {0.5F}, 1).size(), 0u) << "outside";
}

}  // namespace
}  // namespace weir::tflite
