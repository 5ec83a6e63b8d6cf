#include "weir/base/plain_file.hpp"
#include "weir/tflite/detector.hpp"

#include "rgb_picture.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace weir::tflite {
namespace {

using testing::part;

class TfliteDetector : public ::testing::Test {
 protected:
  void SetUp() override {
    if (library_.empty() || model_.empty()) GTEST_SKIP() << "TensorFlow Lite or its model was not fetched";
  }
  void TearDown() override { std::filesystem::remove(damaged_); }

  // The sentence of the error, "" where the detector was made.
  std::string failure(const ModelFiles& files) {
    auto made = make(files, 1);
    if (made) return "";
    EXPECT_EQ(made.error().reason, "MODEL_ERROR");
    return made.error().message;
  }
  std::string failure_of_bytes(const std::string& bytes) {
    std::ofstream(damaged_, std::ios::binary) << bytes;
    return failure({library_, damaged_});
  }

  const std::string library_ = part("lib/libtensorflowlite_c.so"), model_ = part("models/efficientdet-lite0.tflite");
  const std::string damaged_ = ::testing::TempDir() + "weir-damaged-" + std::to_string(getpid()) + ".tflite";
};

bool has(const std::string& text, const std::string& words) { return text.find(words) != text.npos; }

size_t people(const std::vector<Detection>& found) {
  return static_cast<size_t>(std::ranges::count(found, "person", &Detection::label));
}

TEST_F(TfliteDetector, FindsThePeopleOfTheFootage_AndNoneInAnEmptyPicture) {
  PicturePtr street = testing::footage_frame(30);
  if (!street) GTEST_SKIP() << "the footage cannot be decoded here";
  auto detector = make({library_, model_}, 1);
  ASSERT_TRUE(detector) << detector.error().message;
  std::vector<Look> looks = {{street, {}, 0.4}, {std::make_shared<testing::RgbPicture>(640, 360), {}, 0.3}};
  auto found = (*detector)->detect(looks);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 2u);
  EXPECT_GE(people((*found)[0]), 4u);
  EXPECT_EQ(people((*found)[1]), 0u);
  // The man in the middle of the road.
  EXPECT_TRUE(std::ranges::any_of((*found)[0], [](const Detection& d) {
    return d.label == "person" && std::abs(d.box.x1 - 315) < 12 && std::abs(d.box.y1 - 210) < 12 &&
           std::abs(d.box.x2 - 344) < 12 && std::abs(d.box.y2 - 296) < 12;
  }));
}

TEST_F(TfliteDetector, LooksOnlyAtTheRegion_InPixelsOfThePicture) {
  PicturePtr street = testing::footage_frame(30);
  if (!street) GTEST_SKIP() << "the footage cannot be decoded here";
  auto detector = make({library_, model_}, 1);
  ASSERT_TRUE(detector) << detector.error().message;
  Look look{street, {540, 120, 160, 160}, 0.4};  // the couple on the right
  auto found = (*detector)->detect(std::span(&look, 1));
  ASSERT_TRUE(found);
  ASSERT_GE(people(found->front()), 1u);
  for (const Detection& d : found->front()) {
    EXPECT_GE(d.box.x1, 540);
    EXPECT_GE(d.box.y1, 120);
    EXPECT_LE(d.box.x2, 700);
    EXPECT_LE(d.box.y2, 280);
  }
}

TEST_F(TfliteDetector, TakesLabelsFromAFile) {
  std::ofstream(damaged_) << "human\n";
  PicturePtr street = testing::footage_frame(30);
  if (!street) GTEST_SKIP() << "the footage cannot be decoded here";
  auto detector = make({library_, model_, damaged_}, 1);
  ASSERT_TRUE(detector) << detector.error().message;
  Look look{street, {}, 0.4};
  auto found = (*detector)->detect(std::span(&look, 1));
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->front().empty());
  for (const Detection& d : found->front()) EXPECT_EQ(d.label, "human");
}

TEST_F(TfliteDetector, WhatCannotBeLoadedIsAModelErrorThatNamesTheFile) {
  EXPECT_PRED2(has, failure({"/nowhere/libtensorflowlite_c.so", model_}), "/nowhere/libtensorflowlite_c.so");
  EXPECT_PRED2(has, failure({"libm.so.6", model_}), "TfLite");
  EXPECT_PRED2(has, failure({library_, "/nowhere/model.tflite"}), "/nowhere/model.tflite");
  EXPECT_PRED2(has, failure({library_, ::testing::TempDir()}), "not a file");
  EXPECT_PRED2(has, failure({library_, model_, "/nowhere/labels.txt"}), "/nowhere/labels.txt");
  EXPECT_PRED2(has, failure_of_bytes(""), damaged_);
  EXPECT_PRED2(has, failure_of_bytes("not a model at all"), damaged_);
}

TEST_F(TfliteDetector, DamagedModelsAreModelErrors) {
  std::string whole = *read_plain_file(model_, kModelBytesMax);
  std::string labels = whole.substr(whole.size() - 1000);
  // Cut off, with the labels still behind; the wrong mark; noise throughout.
  EXPECT_PRED2(has, failure_of_bytes(whole.substr(0, whole.size() / 2) + labels), damaged_);
  EXPECT_PRED2(has, failure_of_bytes(whole.substr(0, 100) + labels), damaged_);
  std::string marked = whole;
  marked.replace(4, 4, "NOPE");
  EXPECT_PRED2(has, failure_of_bytes(marked), damaged_);
  std::string noise = whole;
  for (size_t i = 0, state = 1; i + 2000 < noise.size(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    noise[i] = static_cast<char>(state >> 33);
  }
  EXPECT_PRED2(has, failure_of_bytes(noise), damaged_);
}

// Two single bytes of the fetched model, found by changing bytes at random: the first makes the library read through a
// wild pointer, the second makes it abort.
TEST_F(TfliteDetector, DamageThatCrashesTheLibraryIsAModelErrorToo) {
  for (auto [at, value] : {std::pair<size_t, char>{3793634, 1}, {3738412, 2}}) {
    std::string damaged = *read_plain_file(model_, kModelBytesMax);
    ASSERT_GT(damaged.size(), at);
    damaged[at] = value;
    EXPECT_PRED2(has, failure_of_bytes(damaged), "is damaged: its library crashed") << at;
  }
}

}  // namespace
}  // namespace weir::tflite
