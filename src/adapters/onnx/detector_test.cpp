#include "weir/base/plain_file.hpp"
#include "weir/onnx/detector.hpp"

#include "rgb_picture.hpp"

#include <gtest/gtest.h>

#include <fstream>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace weir::onnx {
namespace {

using testing::part;

class OnnxDetector : public ::testing::Test {
 protected:
#if defined(__SANITIZE_ADDRESS__)
  // ONNX Runtime itself loses a few bytes, once, when it is first used; memory that is lost later is lost by our code.
  static void SetUpTestSuite() {
    __lsan_disable();
    auto first_use = make({part("lib/libonnxruntime.so.1"), part("models/yolov8n.onnx")}, 1);
    __lsan_enable();
  }
#endif
  void SetUp() override {
    if (library_.empty() || fixed_.empty() || open_.empty())
      GTEST_SKIP() << "ONNX Runtime or its models were not fetched";
  }
  void TearDown() override { std::filesystem::remove(scratch_); }

  std::string failure(const ModelFiles& files) {
    auto made = make(files, 1);
    if (made) return "";
    EXPECT_EQ(made.error().reason, "MODEL_ERROR");
    return made.error().message;
  }
  std::string failure_of_bytes(const std::string& bytes) {
    std::ofstream(scratch_, std::ios::binary) << bytes;
    return failure({library_, scratch_});
  }

  const std::string library_ = part("lib/libonnxruntime.so.1");
  const std::string fixed_ = part("models/yolov8n.onnx"), open_ = part("models/yolo11n.onnx");
  const std::string scratch_ = ::testing::TempDir() + "weir-scratch-" + std::to_string(getpid()) + ".onnx";
};

bool has(const std::string& text, const std::string& words) { return text.find(words) != text.npos; }

std::ptrdiff_t people(const std::vector<Detection>& found) {
  return std::ranges::count(found, "person", &Detection::label);
}

bool sees_man_on_the_road(const std::vector<Detection>& found) {
  return std::ranges::any_of(found, [](const Detection& d) {
    return d.label == "person" && std::abs(d.box.x1 - 315) < 12 && std::abs(d.box.y1 - 210) < 12 &&
           std::abs(d.box.x2 - 344) < 12 && std::abs(d.box.y2 - 296) < 12;
  });
}

TEST_F(OnnxDetector, FindsThePeopleOfTheFootage_WithInputsOfFixedAndOpenSize) {
  PicturePtr street = testing::footage_frame(30);
  if (!street) GTEST_SKIP() << "the footage cannot be decoded here";
  for (const std::string& model : {fixed_, open_}) {
    auto detector = make({library_, model}, 1);
    ASSERT_TRUE(detector) << detector.error().message;
    std::vector<Look> looks = {{street, {}, 0.4},
                               {std::make_shared<testing::RgbPicture>(320, 240), {}, 0.3},
                               {street, {540, 120, 160, 160}, 0.4}};
    auto found = (*detector)->detect(looks);
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_EQ(found->size(), 3u);
    EXPECT_GE(people((*found)[0]), 5) << model;
    EXPECT_TRUE(sees_man_on_the_road((*found)[0])) << model;
    EXPECT_EQ(people((*found)[1]), 0) << model;
    EXPECT_EQ(people((*found)[2]), 2) << model << ": the couple on the right";
    for (const Detection& d : (*found)[2]) EXPECT_TRUE(d.box.x1 >= 540 && d.box.y1 >= 120 && d.box.x2 <= 700);
  }
}

TEST_F(OnnxDetector, ABatchAnswersAsItsPicturesDoOneByOne) {
  std::vector<Look> looks;
  for (int second : {5, 30}) looks.push_back({testing::footage_frame(second), {}, 0.4});
  if (!looks[0].picture) GTEST_SKIP() << "the footage cannot be decoded here";
  auto detector = make({library_, open_}, 2);
  ASSERT_TRUE(detector) << detector.error().message;
  EXPECT_GT((*detector)->batch_max(), 1u);
  auto together = (*detector)->detect(looks);
  ASSERT_TRUE(together);
  for (size_t i = 0; i < looks.size(); ++i) {
    auto alone = (*detector)->detect(std::span(&looks[i], 1));
    ASSERT_TRUE(alone);
    ASSERT_EQ((*alone)[0].size(), (*together)[i].size()) << i;
    for (size_t j = 0; j < (*alone)[0].size(); ++j) {
      EXPECT_EQ((*alone)[0][j].label, (*together)[i][j].label);
      EXPECT_NEAR((*alone)[0][j].box.x1, (*together)[i][j].box.x1, 0.5);
    }
  }
}

TEST_F(OnnxDetector, LabelsOfAFileMustFitTheModel) {
  std::ofstream(scratch_) << "human\n";
  EXPECT_PRED2(has, failure({library_, fixed_, scratch_}), "80 classes, but there are 1 labels");
  {
    std::ofstream out(scratch_);
    for (int i = 0; i < 80; ++i) out << "thing " << i << "\n";
  }
  EXPECT_EQ(failure({library_, fixed_, scratch_}), "");
}

TEST_F(OnnxDetector, WhatCannotBeLoadedIsAModelErrorThatNamesTheFile) {
  EXPECT_PRED2(has, failure({"/nowhere/libonnxruntime.so", fixed_}), "/nowhere/libonnxruntime.so");
  EXPECT_PRED2(has, failure({"libm.so.6", fixed_}), "OrtGetApiBase");
  EXPECT_PRED2(has, failure({library_, "/nowhere/model.onnx"}), "/nowhere/model.onnx");
  EXPECT_PRED2(has, failure_of_bytes(""), scratch_);
  EXPECT_PRED2(has, failure_of_bytes("not a model at all"), scratch_);
  std::string whole = *read_plain_file(fixed_, kModelBytesMax);
  EXPECT_PRED2(has, failure_of_bytes(whole.substr(0, whole.size() / 2)), scratch_);
  EXPECT_PRED2(has, failure_of_bytes(std::string(1000, '\xAA')), scratch_);
}

}  // namespace
}  // namespace weir::onnx
