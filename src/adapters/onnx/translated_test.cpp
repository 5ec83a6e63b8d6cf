#include "weir/onnx/translated.hpp"

#include "rgb_picture.hpp"

#include "weir/base/plain_file.hpp"
#include "weir/ports/model_files.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace weir::onnx {
namespace {

using testing::part;

class Translated : public ::testing::Test {
 protected:
  void SetUp() override {
    if (library_.empty() || path_.empty()) GTEST_SKIP() << "ONNX Runtime or the model was not fetched";
    bytes_ = *read_plain_file(path_, kModelBytesMax);
  }
  Result<std::unique_ptr<Detector>> detector() { return make_translated(library_, bytes_, {"person"}); }
  std::string failure(const std::string& library) {
    auto made = make_translated(library, bytes_, {"person"});
    if (made) return "";
    EXPECT_EQ(made.error().reason, "MODEL_ERROR");
    return made.error().message;
  }

  const std::string library_ = part("lib/libonnxruntime.so.1"), path_ = part("models/efficientdet-lite0.tflite");
  std::string bytes_;
};

bool has(const std::string& text, const std::string& words) { return text.find(words) != text.npos; }

TEST_F(Translated, FindsThePeopleOfTheFootage_WithinTheRegion_AndNoneInAnEmptyPicture) {
  PicturePtr street = testing::footage_frame(30);
  if (!street) GTEST_SKIP() << "the footage cannot be decoded here";
  auto made = detector();
  ASSERT_TRUE(made) << made.error().message;
  std::vector<Look> looks = {{street, {}, 0.4},
                             {std::make_shared<testing::RgbPicture>(640, 360), {}, 0.3},
                             {street, {540, 120, 160, 160}, 0.4}};
  auto found = (*made)->detect(looks);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 3u);
  EXPECT_GE((*found)[0].size(), 4u);
  EXPECT_TRUE((*found)[1].empty());
  EXPECT_GE((*found)[2].size(), 1u);
  for (const Detection& d : (*found)[2])
    EXPECT_TRUE(d.box.x1 >= 540 && d.box.y1 >= 120 && d.box.x2 <= 700 && d.box.y2 <= 280);
}

TEST_F(Translated, ThreadsThatShareAModelAnswerAsOneDoes) {
  std::vector<Look> looks;
  for (int second : {5, 30}) looks.push_back({testing::footage_frame(second), {}, 0.3});
  if (!looks[0].picture) GTEST_SKIP() << "the footage cannot be decoded here";
  auto alone = detector();
  ASSERT_TRUE(alone);
  auto expected = (*alone)->detect(looks);
  ASSERT_TRUE(expected);
  EXPECT_NE((*expected)[0], (*expected)[1]) << "pictures that differ are wanted";
  auto work = [&](bool& same) {
    auto own = detector();
    for (int i = 0; i < 5; ++i) {
      auto found = (*own)->detect(looks);
      same = same && found && *found == *expected;
    }
  };
  bool same[2] = {true, true};
  std::thread first(work, std::ref(same[0])), second(work, std::ref(same[1]));
  first.join();
  second.join();
  EXPECT_TRUE(same[0] && same[1]);
}

TEST_F(Translated, WhatCannotBeDoneIsAnError) {
  EXPECT_PRED2(has, failure("/nowhere/libonnxruntime.so.1"), "/nowhere/libonnxruntime.so.1");
  EXPECT_PRED2(has, failure("libm.so.6"), "OrtGetApiBase");
  bytes_.resize(bytes_.size() / 2);
  EXPECT_PRED2(has, failure(library_), "damaged");
}

}  // namespace
}  // namespace weir::onnx
