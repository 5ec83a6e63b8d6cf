#include "encoder.hpp"
#include "picture_decoder.hpp"

#include <gtest/gtest.h>

namespace weir::ffmpeg {
namespace {

AvPtr<AVFrame> grey(int width, int height, std::int64_t pts) {
  AvPtr<AVFrame> frame = owned(av_frame_alloc());
  frame->width = width;
  frame->height = height;
  frame->format = AV_PIX_FMT_YUV420P;
  frame->pts = pts;
  EXPECT_GE(av_frame_get_buffer(frame.get(), 0), 0);
  for (int plane = 0; plane < 3; ++plane)
    for (int y = 0; y < (plane == 0 ? height : height / 2); ++y)
      std::fill_n(frame->data[plane] + std::ptrdiff_t{y} * frame->linesize[plane], plane == 0 ? width : width / 2,
                  static_cast<std::uint8_t>(plane == 0 ? 60 + y : 128));
  return frame;
}

const EncoderConfig kSmall{.width = 160, .height = 120, .fps = 10, .keyframe = 1s, .hardware = false};

TEST(Encoder, EachPicture_LeavesAtOnce_UnderItsOwnTime_AndCanBeDecoded) {
  auto encoder = *Encoder::create(kSmall, *grey(160, 120, 0));
  std::unique_ptr<PictureDecoder> decoder;
  for (int i = 0; i < 25; ++i) {
    std::int64_t pts = 7'000'000 + i * 100'000 + (i % 3) * 777;  // times of a stream that are not quite regular
    auto packets = *encoder->encode(*grey(160, 120, pts));
    ASSERT_EQ(packets.size(), 1u) << i;
    EXPECT_EQ(packets[0]->pts, pts);
    ASSERT_NE(encoder->parameters(), nullptr);
    EXPECT_GT(encoder->parameters()->extradata_size, 10);
    if (!decoder) decoder = PictureDecoder::create(*encoder->parameters());
    auto frames = decoder->decode(*packets[0], Duration(packets[0]->pts), 100ms);
    ASSERT_EQ(frames.size(), 1u) << i;
    EXPECT_EQ(frames[0]->pts, pts);
    EXPECT_NEAR(frames[0]->data[0][50 * frames[0]->linesize[0] + 80], 110, 6);
  }
}

TEST(Encoder, Keyframes_ComeByTime_AndWhenTheyAreAskedFor) {
  auto encoder = *Encoder::create(kSmall, *grey(160, 120, 0));
  std::vector<int> keys;
  for (int i = 0; i < 40; ++i) {
    if (i == 25) encoder->force_keyframe();
    auto packets = *encoder->encode(*grey(160, 120, i * 100'000));
    if ((packets.at(0)->flags & AV_PKT_FLAG_KEY) != 0) keys.push_back(i);
  }
  EXPECT_EQ(keys, (std::vector<int>{0, 10, 20, 25, 35}));
}

TEST(Encoder, TheSamePictures_AreAnnouncedAlike_EveryTime) {
  auto announced = [] {
    auto encoder = *Encoder::create(kSmall, *grey(160, 120, 0));
    EXPECT_TRUE(encoder->encode(*grey(160, 120, 5)));
    return std::string(reinterpret_cast<const char*>(encoder->parameters()->extradata),
                       static_cast<size_t>(encoder->parameters()->extradata_size));
  };
  EXPECT_EQ(announced(), announced());
}

TEST(Encoder, TheUsualBitrate_FollowsSizeAndRate) {
  EXPECT_EQ(usual_kbit({.width = 1280, .height = 720, .fps = 25}), 2500);
  EXPECT_EQ(usual_kbit({.width = 160, .height = 120, .fps = 10}), 300);
  EXPECT_EQ(usual_kbit({.width = 7680, .height = 4320, .fps = 60}), 20'000);
}

TEST(WithParameterSets, AreAddedWhereTheyLack_AndLeftWhereTheyAre) {
  auto encoder = *Encoder::create(kSmall, *grey(160, 120, 0));
  auto key = std::move(encoder->encode(*grey(160, 120, 0))->at(0));
  int whole = key->size;
  AvPtr<AVPacket> same = with_parameter_sets(std::move(key), *encoder->parameters());
  EXPECT_EQ(same->size, whole) << "its own stand in it";
  AvPtr<AVPacket> bare = owned(av_packet_alloc());
  ASSERT_GE(av_new_packet(bare.get(), 6), 0);
  std::copy_n("\0\0\0\1\x65\x88", 6, bare->data);
  bare->flags |= AV_PKT_FLAG_KEY;
  AvPtr<AVPacket> added = with_parameter_sets(std::move(bare), *encoder->parameters());
  EXPECT_EQ(added->size, encoder->parameters()->extradata_size + 6);
  EXPECT_NE(added->flags & AV_PKT_FLAG_KEY, 0);
}

}  // namespace
}  // namespace weir::ffmpeg
