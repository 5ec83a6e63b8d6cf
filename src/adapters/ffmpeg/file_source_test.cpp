#include "clip_testing.hpp"
#include "source_testing.hpp"
#include "temp_files.hpp"

#include "weir/base/clock.hpp"

#include <fstream>

namespace weir::ffmpeg {
namespace {

using namespace testing;

TEST(FileSource, IsReadToItsEnd_InAnyContainer) {
  test::TempDir folder;
  struct File {
    const char* name;
    ClipSpec spec;
    const char* codec;
  };
  for (const File& file : {File{"a.mp4", {.b_frames = 2, .global_header = true}, "h264"},
                           File{"b.ts", {.b_frames = 2}, "h264"},
                           File{"c.mkv", {.encoder = "libx265", .pictures = 30, .global_header = true}, "hevc"},
                           File{"d.avi", {.encoder = "mjpeg", .format = AV_PIX_FMT_YUVJ420P}, "mjpeg"}}) {
    SCOPED_TRACE(file.name);
    write_file(encode(file.spec), folder.path() + "/" + file.name);
    SourceConfig config = config_for("file://" + folder.path() + "/" + file.name);
    EXPECT_TRUE(outcome(config).starts_with("URL_REFUSED")) << "only where the operator allows files";
    config.files = true;
    config.realtime = false;
    auto source = source_for(config);
    auto facts = source->open();
    ASSERT_TRUE(bool(facts)) << facts.error().message;
    EXPECT_EQ(facts->codec, file.codec);
    EXPECT_EQ(facts->width, 320);
    int packets = 0, shown = 0;
    for (;; ++packets) {
      auto packet = source->read();
      if (!packet) {
        EXPECT_EQ(packet.error().message, "the file ended");
        break;
      }
      EXPECT_TRUE(packets > 0 || (*packet)->key);
      auto pictures = source->decode(*packet);
      ASSERT_TRUE(bool(pictures));
      for (const auto& picture : *pictures) EXPECT_EQ(number_in(*picture), shown++);
    }
    EXPECT_EQ(packets, file.spec.pictures);
    EXPECT_GE(shown, packets - 5);
  }
}

TEST(FileSource, KeepsItsOwnPace_UnlessToldOtherwise) {
  test::TempDir folder;
  write_file(encode({.pictures = 6, .global_header = true}), folder.path() + "/a.mp4");
  SourceConfig config = config_for("file://" + folder.path() + "/a.mp4");
  config.files = true;
  auto source = source_for(config);
  Instant before = boot_now();
  ASSERT_TRUE(bool(source->open()));
  while (source->read()) {
  }
  EXPECT_GE(boot_now() - before, 490ms);
}

TEST(FileSource, Playlist_IsNotAFile) {
  test::TempDir folder;
  std::ofstream(folder.path() + "/list.m3u8") << "#EXTM3U\n#EXTINF:1,\n/etc/hostname\n";
  SourceConfig config = config_for("file://" + folder.path() + "/list.m3u8");
  config.files = true;
  EXPECT_TRUE(outcome(config).starts_with("RTSP_PROTOCOL")) << outcome(config);
}

}  // namespace
}  // namespace weir::ffmpeg
