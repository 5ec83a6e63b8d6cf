#include "ssd.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace weir::onnx {
namespace {

// Places in a row, a tenth of the picture wide and apart; a byte of a score is a hundredth; offsets are nothing at 100.
SsdHead row_of(int places, int columns) {
  SsdHead head{.columns = columns, .iou_max = 0.5F, .boxes_max = 10};
  for (int i = 0; i < places; ++i) head.anchors.push_back({0.5F, 0.05F + 0.1F * static_cast<float>(i), 0.2F, 0.1F});
  for (int i = 0; i < 256; ++i) {
    head.score_of[static_cast<size_t>(i)] = static_cast<float>(i) / 100;
    head.offset_of[static_cast<size_t>(i)] = static_cast<float>(i - 100) / 10;
  }
  return head;
}

class Ssd : public ::testing::Test {
 protected:
  std::vector<SsdBox> find(double min_score) const { return find_boxes(head_, offsets_, scores_, min_score); }
  std::uint8_t& score(int place, int column) { return scores_[static_cast<size_t>(place * head_.columns + column)]; }
  std::uint8_t& offset(int place, int which) { return offsets_[static_cast<size_t>(place * 4 + which)]; }

  SsdHead head_ = row_of(10, 3);
  std::vector<std::uint8_t> offsets_ = std::vector<std::uint8_t>(40, 100), scores_ = std::vector<std::uint8_t>(30, 1);
};

TEST_F(Ssd, FindsOnlyWhatIsCertainEnough_MostCertainFirst) {
  score(2, 1) = 50, score(7, 2) = 80, score(9, 0) = 30;
  auto found = find(0.4);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].klass, 2);
  EXPECT_FLOAT_EQ(found[0].score, 0.8F);
  EXPECT_EQ(found[1].klass, 1);
  EXPECT_FLOAT_EQ(found[1].left, 0.2F);
  EXPECT_FLOAT_EQ(found[1].right, 0.3F);
  EXPECT_FLOAT_EQ(found[1].top, 0.4F);
  EXPECT_FLOAT_EQ(found[1].bottom, 0.6F);
  EXPECT_EQ(find(0.3).size(), 3u);
  EXPECT_EQ(find(0.81).size(), 0u);
  head_.min_score = 0.6F;
  EXPECT_EQ(find(0.3).size(), 1u) << "the model's own limit";
}

TEST_F(Ssd, OffsetsMoveAndStretchTheAnchor) {
  score(4, 0) = 90;
  offset(4, 0) = 110, offset(4, 1) = 90, offset(4, 3) = 110;  // down and left by its own size; e times as wide
  auto found = find(0.5);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FLOAT_EQ(found[0].top, 0.6F);
  EXPECT_FLOAT_EQ(found[0].bottom, 0.8F);
  EXPECT_NEAR(found[0].left, 0.35 - 0.05 * std::exp(1), 1e-6);
  EXPECT_NEAR(found[0].right, 0.35 + 0.05 * std::exp(1), 1e-6);
}

TEST_F(Ssd, TheMoreCertainHidesWhatOverlapsIt_WhateverItsClass) {
  score(4, 0) = 90, score(5, 2) = 80;
  EXPECT_EQ(find(0.5).size(), 2u);
  offset(5, 1) = 93;  // two thirds overlap would be 0.54
  auto found = find(0.5);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].klass, 0);
  offset(5, 1) = 94;  // 0.43
  EXPECT_EQ(find(0.5).size(), 2u);
}

TEST_F(Ssd, EquallyCertainOnesStayInOrder_AndOnlySoManyAreKept) {
  for (int place = 0; place < 10; ++place) score(place, place % 2 + 1) = 70;
  score(2, 2) = 70;  // as certain as its class 1, which comes first
  head_.boxes_max = 4;
  auto found = find(0.5);
  ASSERT_EQ(found.size(), 4u);
  for (int i = 0; i < 4; ++i) {
    EXPECT_FLOAT_EQ(found[static_cast<size_t>(i)].left, 0.1F * static_cast<float>(i));
    EXPECT_EQ(found[static_cast<size_t>(i)].klass, i % 2 + 1);
  }
}

TEST_F(Ssd, TheBackgroundIsNoClass) {
  head_.background = 1;
  score(1, 0) = 99, score(2, 0) = 99, score(2, 1) = 60;
  auto found = find(0.5);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].klass, 0);
  EXPECT_FLOAT_EQ(found[0].score, 0.6F);
}

// Long lists are looked at stretch by stretch, whose ends are not those of places.
TEST_F(Ssd, EveryPlaceOfALongListIsSeen) {
  head_ = row_of(500, 7);
  offsets_.assign(2000, 100);
  for (int place = 0; place < 500; ++place) {
    scores_.assign(3500, 10);
    score(place, place % 7) = 50;
    auto found = find(0.5);
    ASSERT_EQ(found.size(), 1u) << place;
    EXPECT_EQ(found[0].klass, place % 7);
    EXPECT_NEAR(found[0].left, 0.1 * place, 1e-3);
  }
  scores_.assign(3500, 50);
  head_.boxes_max = 1000;
  EXPECT_EQ(find(0.5).size(), 500u);
}

}  // namespace
}  // namespace weir::onnx
