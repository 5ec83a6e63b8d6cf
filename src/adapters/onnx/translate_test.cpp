#include "translate.hpp"

#include "rgb_picture.hpp"
#include "tflite_file.hpp"

#include "weir/base/plain_file.hpp"
#include "weir/ports/model_files.hpp"

#include <gtest/gtest.h>

#include <random>

namespace weir::onnx {
namespace {

class Translate : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = testing::part("models/efficientdet-lite0.tflite");
    if (path.empty()) GTEST_SKIP() << "the model was not fetched";
    model_ = *read_plain_file(path, kModelBytesMax);
  }
  std::string failure() const {
    auto made = translate(model_);
    return made ? "" : made.error().message;
  }
  // Where the file holds anything but weights: what is read before they are used.
  std::vector<size_t> structure() const {
    Damage damage;
    auto graph = read_tflite(model_, damage);
    std::vector<bool> weight(model_.size());
    for (const Tensor& tensor : graph->tensors)
      for (size_t i = 0; i < tensor.constant.size(); ++i)
        weight[static_cast<size_t>(tensor.constant.data() - model_.data()) + i] = true;
    std::vector<size_t> places;
    for (size_t i = 0; i < model_.size(); ++i)
      if (!weight[i]) places.push_back(i);
    return places;
  }
  std::string model_;
};

bool has(const std::string& text, const std::string& words) { return text.find(words) != text.npos; }

TEST_F(Translate, SaysTheDefaultModelInOnnx) {
  auto made = translate(model_);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->width, 320);
  EXPECT_EQ(made->height, 320);
  EXPECT_EQ(made->head.anchors.size(), 19206u);
  EXPECT_EQ(made->head.columns, 90);
  EXPECT_EQ(made->head.background, 0);
  EXPECT_EQ(made->head.boxes_max, 25);
  EXPECT_EQ(made->head.iou_max, 0.5F);
  EXPECT_LT(made->head.min_score, 0);
  EXPECT_EQ(made->head.score_of[0], 0.F);
  EXPECT_NEAR(made->head.score_of[255], 0.97, 0.01);
  EXPECT_GT(made->onnx.size(), 3'000'000u);
}

TEST_F(Translate, WhatIsNotKnownIsAnErrorThatSaysWhat) {
  model_.replace(model_.find("TFLite_Detection_PostProcess"), 6, "Unseen");
  EXPECT_PRED2(has, failure(), "Unseen_Detection_PostProcess");
  for (std::string other : {"", "no model", "\x10\0\0\0TFL3", "TFL3TFL3TFL3"}) {
    model_ = other;
    EXPECT_PRED2(has, failure(), "damaged");
  }
}

TEST_F(Translate, FilesThatWereCutOffAreErrors) {
  std::string whole = model_;
  size_t model_end = whole.rfind("PK\3\4");  // the labels stand behind the model
  ASSERT_NE(model_end, whole.npos);
  for (size_t i = 0; i < 500; ++i) {
    model_ = whole.substr(0, model_end * i / 500);
    EXPECT_NE(failure(), "") << model_.size();
  }
}

// Every outcome is fine but a crash, a hang, or memory without bounds; sanitizers look on where they are there.
TEST_F(Translate, DamagedFilesAreReadWithoutHarm) {
  const std::string whole = model_;
  std::vector<size_t> places = structure();
  ASSERT_GT(places.size(), 50'000u);
  std::mt19937 random(7);
  int refused = 0, copies = 4000;
  for (int copy = 0; copy < copies; ++copy) {
    std::vector<size_t> changed(size_t{1} << copy % 6);
    for (size_t& at : changed) {
      at = places[random() % places.size()];
      // Any byte, or one of those that make offsets and counts extreme.
      model_[at] = static_cast<char>(random() % 2 ? random() : std::array{0, 1, 127, 128, 255}[random() % 5]);
    }
    Damage damage;
    auto graph = read_tflite(model_, damage);
    // Building the same weights anew a thousand times would only take time.
    if (!graph || (copy % 32 < 2 && !translate(model_))) ++refused;
    for (size_t at : changed) model_[at] = whole[at];
  }
  EXPECT_GT(refused, copies / 10);
  EXPECT_LT(refused, copies);
}

TEST_F(Translate, DamagedOptionsOfOperatorsAreReadWithoutHarm) {
  const std::string whole = model_;
  size_t at = whole.find("max_detections"), end = whole.find("use_regular_nms") + 100;
  std::string options = whole.substr(at, end - at);
  std::mt19937 random(8);
  for (int copy = 0; copy < 20'000; ++copy) {
    std::string changed = options.substr(0, copy % 3 == 0 ? random() % options.size() : options.size());
    for (int i = 0; i < 3 && !changed.empty(); ++i) changed[random() % changed.size()] = static_cast<char>(random());
    read_number_map(changed);
  }
  EXPECT_EQ(read_number_map("").size(), 0u);
}

TEST_F(Translate, OptionsOfOperatorsAreNumbersByName) {
  Damage damage;
  auto graph = read_tflite(model_, damage);
  ASSERT_TRUE(graph);
  auto options = read_number_map(graph->steps.back().custom_options);
  EXPECT_EQ(options.size(), 10u);
  EXPECT_EQ(options["max_detections"], 25);
  EXPECT_EQ(options["num_classes"], 90);
  EXPECT_EQ(options["nms_iou_threshold"], 0.5);
  EXPECT_EQ(options["y_scale"], 1);
  EXPECT_EQ(options["use_regular_nms"], 0);
}

}  // namespace
}  // namespace weir::onnx
