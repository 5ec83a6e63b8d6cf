#include "weir/ffmpeg/clip.hpp"

#include "weir/ffmpeg/source.hpp"

#include "temp_files.hpp"

#include <gtest/gtest.h>

namespace weir::ffmpeg {
namespace {

class ClipOf : public ::testing::TestWithParam<const char*> {};

// One group of pictures, all of which the source decodes, none of them like the one before.
TEST_P(ClipOf, IsReadAndDecodedAsACamerasStreamIs) {
  test::TempDir folder;
  std::string path = folder.path() + "/clip.mkv";
  auto written = write_clip(path, {.codec = GetParam(), .width = 320, .height = 240, .fps = 10});
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(written->pictures, 10);
  EXPECT_GT(written->kbit, 10);
  auto source = make_source({.url = Secret("file://" + path), .files = true, .realtime = false});
  ASSERT_TRUE(source) << source.error().message;
  auto facts = (*source)->open();
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->codec, GetParam());
  EXPECT_EQ(facts->width, 320);
  EXPECT_FALSE(facts->reordered);
  int packets = 0, pictures = 0;
  for (auto packet = (*source)->read(); packet; packet = (*source)->read()) {
    EXPECT_EQ((*packet)->key, packets == 0 || GetParam() == std::string("mjpeg")) << packets;
    ++packets;
    auto shown = (*source)->decode(*packet);
    ASSERT_TRUE(shown) << shown.error().message;
    pictures += static_cast<int>(shown->size());
  }
  EXPECT_EQ(packets, 10);
  EXPECT_EQ(pictures, 10);
}
INSTANTIATE_TEST_SUITE_P(Codecs, ClipOf, ::testing::Values("h264", "hevc", "mjpeg"),
                         [](const auto& codec) { return std::string(codec.param); });

TEST(Clip, OfAnUnknownCodec_IsRefused) {
  auto written = write_clip("/dev/null", {.codec = "vp8"});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, "the codec must be one of: h264, hevc, mjpeg");
}

}  // namespace
}  // namespace weir::ffmpeg
