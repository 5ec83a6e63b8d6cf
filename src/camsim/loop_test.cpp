#include "weir/camsim/loop.hpp"

#include "testing.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace weir::camsim {
namespace {

namespace fs = std::filesystem;

Profile small(std::string_view more) {
  return *parse_profile(more, *parse_profile("scene=moving,width=192,height=96,fps=10,seconds=2,keyframe_s=1"));
}

std::vector<int> keys_of(const Loop& loop) {
  std::vector<int> out;
  for (size_t i = 0; i < loop.units().size(); ++i)
    if (loop.units()[i].key) out.push_back(static_cast<int>(i));
  return out;
}

TEST(CamsimLoop, EveryCodec_HasKeyframesWhenDueAndEveryFrameOnce) {
  test::TempDir cache;
  LoopLibrary library("", cache.path());
  for (const char* codec : {"codec=h264", "codec=h265", "codec=h264,bitrate_kbps=300"}) {
    auto loop = library.get(small(codec));
    ASSERT_TRUE(loop) << loop.error().message;
    EXPECT_EQ((*loop)->units().size(), 20u) << codec;
    EXPECT_EQ(keys_of(**loop), (std::vector{0, 10})) << codec;
    EXPECT_EQ((*loop)->reorder_frames(), 0) << codec;
    EXPECT_FALSE((*loop)->parameter_sets().empty()) << codec;
  }
  auto jpeg = library.get(small("codec=mjpeg"));
  ASSERT_TRUE(jpeg);
  EXPECT_EQ(keys_of(**jpeg).size(), 20u);
  EXPECT_TRUE((*jpeg)->parameter_sets().empty());
}

TEST(CamsimLoop, BFrames_AreSentOutOfOrder) {
  test::TempDir cache;
  auto loop = LoopLibrary("", cache.path()).get(small("bframes=2"));
  ASSERT_TRUE(loop);
  EXPECT_GT((*loop)->reorder_frames(), 0);
  EXPECT_EQ((*loop)->units()[0].number, 0);
  EXPECT_GT((*loop)->units()[1].number, 1);
}

TEST(CamsimLoop, IntraRefresh_HasOneKeyframe) {
  test::TempDir cache;
  auto loop = LoopLibrary("", cache.path()).get(small("intra_refresh=true"));
  ASSERT_TRUE(loop);
  EXPECT_EQ(keys_of(**loop), std::vector{0});
}

TEST(CamsimLoop, SecondLibrary_FindsItInTheCache_UnlessItIsBroken) {
  test::TempDir cache;
  auto first = LoopLibrary("", cache.path()).get(small(""));
  ASSERT_TRUE(first);
  auto entries = [&] { return std::distance(fs::directory_iterator(cache.path()), fs::directory_iterator()); };
  ASSERT_EQ(entries(), 1);  // and no temporary file
  fs::path file = fs::directory_iterator(cache.path())->path();

  // A file that says something else shows whether it was used.
  std::string head = R"({"units":[[5,0,true]]})";
  std::ofstream(file) << head << "\nhello";
  auto second = LoopLibrary("", cache.path()).get(small(""));
  ASSERT_TRUE(second);
  EXPECT_EQ((*second)->data((*second)->units()[0]), "hello");

  std::ofstream(file) << head << "\nhell";
  auto third = LoopLibrary("", cache.path()).get(small(""));
  ASSERT_TRUE(third);
  EXPECT_EQ((*third)->units().size(), (*first)->units().size());
  EXPECT_EQ(entries(), 1);
}

TEST(CamsimLoop, MissingFootage_IsNamed) {
  test::TempDir cache;
  auto loop = LoopLibrary("/nowhere/people.avi", cache.path()).get(small("scene=footage"));
  ASSERT_FALSE(loop);
  EXPECT_NE(loop.error().message.find("/nowhere/people.avi"), std::string::npos);
}

TEST(CamsimLoop, UnitsThatFormNoLoop_AreRefused) {
  auto make = [](std::vector<AccessUnit> units) { return bool(Loop::create({}, std::move(units), "abcdef")); };
  EXPECT_TRUE(make({{0, 3, 0, true}, {3, 3, 1, false}}));
  EXPECT_FALSE(make({}));
  EXPECT_FALSE(make({{0, 3, 0, false}}));
  EXPECT_FALSE(make({{0, 3, 0, true}, {3, 3, 0, false}}));
  EXPECT_FALSE(make({{0, 3, 0, true}, {3, 3, 2, false}}));
  EXPECT_FALSE(make({{0, 3, 0, true}, {3, 4, 1, false}}));
}

}  // namespace
}  // namespace weir::camsim
