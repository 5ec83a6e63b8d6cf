// Which library runs a .tflite model, and that it makes no difference to what is seen.
#include "detectors.hpp"

#include "rgb_picture.hpp"

#include "weir/base/log.hpp"
#include "weir/base/plain_file.hpp"
#include "weir/ports/model_files.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace weir::apps {
namespace {

namespace fs = std::filesystem;
using testing::part;

// A folder with the model, and for each detector one with links to some of the libraries. The others are there, but
// broken: one that is only missing would be found where the process has it already.
class Detectors : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"lib/libonnxruntime.so.1", "lib/libtensorflowlite_c.so", "models/efficientdet-lite0.tflite"})
      if (part(name).empty()) GTEST_SKIP() << name << " was not fetched";
    fs::create_directories(folder_);
    model_ = *read_plain_file(part("models/efficientdet-lite0.tflite"), kModelBytesMax);
  }
  void TearDown() override { fs::remove_all(folder_); }

  Result<std::unique_ptr<Detector>> make(std::initializer_list<std::string> libraries) {
    fs::path lib = folder_ / std::to_string(++made_);
    fs::create_directories(lib);
    for (const std::string& name : {onnx_, tflite_})
      if (std::ranges::find(libraries, name) != libraries.end()) fs::create_symlink(part("lib/" + name), lib / name);
      else std::ofstream(lib / name) << "broken";
    std::ofstream(folder_ / "efficientdet-lite0.tflite", std::ios::binary) << model_;
    return detector_factory({.models = folder_.string(), .libraries = lib.string()})({.detector = "tflite"});
  }
  // The line that says which library it is; "" where making failed, or where it was said before.
  std::string said(std::initializer_list<std::string> libraries) {
    log::configure({});
    ::testing::internal::CaptureStderr();
    auto made = make(libraries);
    log::configure({.level = log::Level::off});
    std::string lines = ::testing::internal::GetCapturedStderr();
    return made && lines.find("detector.engine") != lines.npos ? lines : "";
  }

  // Shows the same pictures to both libraries; how many detections were the same in both, -1 where any was not.
  int same_detections(double min_score, int every_s) {
    auto fast = make({onnx_}), usual = make({tflite_});
    EXPECT_TRUE(fast) << fast.error().message;
    EXPECT_TRUE(usual) << usual.error().message;
    int same = 0;
    for (int second = 1; fast && usual && second < 79; second += every_s) {
      PicturePtr street = testing::footage_frame(second);
      for (Region region : {Region{}, Region{300, 100, 400, 400}}) {
        Look look{street, region, min_score};
        auto seen = (*fast)->detect({&look, 1}), wanted = (*usual)->detect({&look, 1});
        if (!seen || !wanted || seen->front().size() != wanted->front().size()) return -1;
        for (size_t i = 0; i < seen->front().size(); ++i, ++same)
          if (!alike(seen->front()[i], wanted->front()[i])) return -1;
      }
    }
    return same;
  }
  static bool alike(const Detection& a, const Detection& b) {
    auto near = [](double x, double y) { return std::abs(x - y) < 0.01; };
    return a.label == b.label && std::abs(a.score - b.score) < 1e-6 && near(a.box.x1, b.box.x1) &&
           near(a.box.y1, b.box.y1) && near(a.box.x2, b.box.x2) && near(a.box.y2, b.box.y2);
  }

  const std::string onnx_ = "libonnxruntime.so.1", tflite_ = "libtensorflowlite_c.so";
  const fs::path folder_ = fs::path(::testing::TempDir()) / fmt::format("weir-detectors-{}-{}", getpid(), ++made_);
  std::string model_;
  static inline int made_ = 0;  // libraries stay loaded, and are known by their paths
};

bool has(const std::string& text, const std::string& words) { return text.find(words) != text.npos; }

TEST_F(Detectors, OnnxRuntimeSeesExactlyWhatTensorFlowLiteSees) {
  if (!testing::footage_frame(1)) GTEST_SKIP() << "the footage cannot be decoded here";
  EXPECT_GT(same_detections(0.2, 6), 150);
}

// Results that may be below zero, in a model whose activations allow none: the bytes alone do not say so any more.
TEST_F(Detectors, WhatActivationsCutOffIsCutOffInBoth) {
  if (!testing::footage_frame(1)) GTEST_SKIP() << "the footage cannot be decoded here";
  const std::string lowest("\1\0\0\0\x80\xff\xff\xff\xff\xff\xff\xff", 12);
  size_t at = model_.size();
  for (int changed = 0; changed < 5; ++changed) {
    at = model_.rfind(lowest, at - 1);
    ASSERT_NE(at, model_.npos);
    model_[at + 4] = static_cast<char>(-100);
  }
  EXPECT_GT(same_detections(0.02, 20), 100);
}

TEST_F(Detectors, TheFasterLibraryIsTakenWhereItIsThere_AndThisIsSaidOnce) {
  EXPECT_PRED2(has, said({onnx_, tflite_}), "ONNX Runtime");
  EXPECT_EQ(said({onnx_, tflite_}), "");
  EXPECT_PRED2(has, said({tflite_}), "TensorFlow Lite");
}

// The same model with another way to merge boxes, which only TensorFlow Lite knows.
TEST_F(Detectors, AModelThatCannotBeTranslatedRunsOnTensorFlowLite) {
  size_t names = model_.find("use_regular_nms"), classes = model_.find(std::string("\x5a\0\0\0\0\0\0\0", 8), names);
  ASSERT_LT(classes, names + 200);
  model_[classes + 4] = 1;
  EXPECT_PRED2(has, said({onnx_, tflite_}), "TensorFlow Lite");
  auto alone = make({onnx_});
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().reason, "MODEL_ERROR");
}

TEST_F(Detectors, WhatNeitherCanRunIsAModelErrorThatNamesTheFile) {
  auto without = make({});
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().reason, "MODEL_ERROR");
  EXPECT_PRED2(has, without.error().message, tflite_);
  model_.replace(4, 4, "NOPE");
  auto damaged = make({onnx_, tflite_});
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().reason, "MODEL_ERROR");
  EXPECT_PRED2(has, damaged.error().message, "efficientdet-lite0.tflite");
}

// What a runner tells the control plane: every model in the folder, and only what it can say.
TEST_F(Detectors, ModelsAreListedWithTheirLabels_AndADamagedOneIsLeftOut) {
  std::ofstream(folder_ / "efficientdet-lite0.tflite", std::ios::binary) << model_;
  std::ofstream(folder_ / "mine.tflite") << "labels stand beside it";
  std::ofstream(folder_ / "mine.txt") << "forklift\n???\nforklift\nbad\xff\npallet\n";
  std::ofstream(folder_ / "nameless.onnx") << "no model at all";
  std::ofstream(folder_ / "notes.md") << "no model either";
  std::vector<ModelLabels> models = list_models({.models = folder_.string()});
  std::erase_if(models, [](const ModelLabels& model) { return model.detector == "hog"; });
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0].name, "efficientdet-lite0");
  EXPECT_TRUE(models[0].is_default);
  EXPECT_EQ(models[0].labels.size(), 80u);
  EXPECT_EQ(models[0].labels.front(), "person");
  EXPECT_EQ(models[1].name, "mine");
  EXPECT_FALSE(models[1].is_default);
  EXPECT_EQ(models[1].labels, (std::vector<std::string>{"forklift", "pallet"}));
  EXPECT_EQ(models_problem(models), "");
}

}  // namespace
}  // namespace weir::apps
