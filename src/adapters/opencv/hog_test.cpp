#include "weir/opencv/hog.hpp"

#include "rgb_picture.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace weir::opencv {
namespace {

// Beside the executables of the same build.
std::string module() {
  auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "src/apps/weir-hog.so";
  return std::filesystem::exists(path) ? path.string() : "";
}

TEST(HogDetector, FindsPeopleOfTheFootage_AndNoneInAnEmptyPicture) {
  PicturePtr street = testing::footage_frame(25);
  if (module().empty() || !street) GTEST_SKIP() << "the module was not built, or the footage cannot be decoded here";
  auto detector = make_hog({module()});
  ASSERT_TRUE(detector) << detector.error().message;
  std::vector<Look> looks = {{street, {}, 0.3},
                             {std::make_shared<testing::RgbPicture>(640, 360), {}, 0.3},
                             {std::make_shared<testing::RgbPicture>(20, 20), {}, 0.3},
                             {street, {500, 200, 200, 200}, 0}};
  auto found = (*detector)->detect(looks);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 4u);
  EXPECT_GE((*found)[0].size(), 2u);
  for (const Detection& d : (*found)[0]) {
    EXPECT_EQ(d.label, "person");
    EXPECT_TRUE(d.score >= 0.5 && d.score <= 1) << d.score;
  }
  EXPECT_TRUE((*found)[1].empty());
  EXPECT_TRUE((*found)[2].empty());
  EXPECT_GE((*found)[3].size(), 1u);
  for (const Detection& d : (*found)[3]) EXPECT_TRUE(d.box.x1 >= 500 && d.box.y1 >= 200 && d.box.x2 <= 700);
}

TEST(HogDetector, AsManyAsThereAreThreads_WorkAtOnce) {
  if (module().empty()) GTEST_SKIP() << "the module was not built";
  std::atomic<int> looked = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&] {
        auto detector = make_hog({module()});
        const std::vector<Look> looks(250, {std::make_shared<testing::RgbPicture>(64, 128), {}, 0.3});
        if (detector && (*detector)->detect(looks)) looked += 250;
      });
  }
  EXPECT_EQ(looked, 8 * 250);
}

TEST(HogDetector, WithoutItsModuleIsAModelErrorThatNamesIt) {
  auto made = make_hog({"/nowhere/weir-hog.so"});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().reason, "MODEL_ERROR");
  EXPECT_NE(made.error().message.find("/nowhere/weir-hog.so"), std::string::npos);
}

}  // namespace
}  // namespace weir::opencv
