#include "decoded_picture.hpp"

#include "clip_testing.hpp"
#include "decoder.hpp"

extern "C" {
#include <libavutil/pixdesc.h>
}

namespace weir::ffmpeg {
namespace {

using namespace testing;

// One colour all over, given as Y, U, V.
AvPtr<AVFrame> plain(AVPixelFormat format, int width, int height, int y, int u, int v) {
  AvPtr<AVFrame> frame = owned(av_frame_alloc());
  frame->format = format;
  frame->width = width;
  frame->height = height;
  av_frame_get_buffer(frame.get(), 0);
  const AVPixFmtDescriptor& description = *av_pix_fmt_desc_get(format);
  int values[] = {y, u, v};
  for (int c = 0; c < description.nb_components; ++c) {
    const AVComponentDescriptor& component = description.comp[c];
    int rows = c == 0 ? height : AV_CEIL_RSHIFT(height, description.log2_chroma_h);
    int columns = c == 0 ? width : AV_CEIL_RSHIFT(width, description.log2_chroma_w);
    for (int row = 0; row < rows; ++row)
      for (int column = 0; column < columns; ++column) {
        std::uint8_t* at = frame->data[component.plane] + row * frame->linesize[component.plane] +
                           column * component.step + component.offset;
        if (component.depth > 8)
          *reinterpret_cast<std::uint16_t*>(at) = static_cast<std::uint16_t>(values[c] << (component.depth - 8));
        else
          *at = static_cast<std::uint8_t>(values[c]);
      }
  }
  return frame;
}

TEST(DecodedPicture, EveryKindOfPixels_BecomesTheSameRgb) {
  // Limited-range BT.601 red: Y 81, U 90, V 240.
  for (AVPixelFormat format : {AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUV422P, AV_PIX_FMT_YUV444P, AV_PIX_FMT_NV12,
                               AV_PIX_FMT_YUV420P10LE, AV_PIX_FMT_YUYV422}) {
    SCOPED_TRACE(av_get_pix_fmt_name(format));
    auto picture = DecodedPicture::create(plain(format, 64, 48, 81, 90, 240));
    ASSERT_NE(picture, nullptr);
    EXPECT_NEAR(picture->luma()[20 * picture->luma_stride() + 20], 81, 1);
    std::vector<std::uint8_t> out(32 * 24 * 3);
    ASSERT_TRUE(picture->to_rgb({0, 0, 64, 48}, 32, 24, out));
    for (size_t i = 0; i < out.size(); i += 3) {
      ASSERT_NEAR(out[i], 255, 4) << i;
      ASSERT_NEAR(out[i + 1], 0, 4) << i;
      ASSERT_NEAR(out[i + 2], 0, 4) << i;
    }
  }
}

TEST(DecodedPicture, RangeAndMatrix_AreRespected) {
  struct Case {
    AVPixelFormat format;
    AVColorRange range;
    AVColorSpace space;
    int y, u, v;
    int red, green, blue;
  };
  constexpr AVColorRange kFull = AVCOL_RANGE_JPEG, kLimited = AVCOL_RANGE_MPEG, kUnsaid = AVCOL_RANGE_UNSPECIFIED;
  for (const Case& each : {Case{AV_PIX_FMT_YUVJ420P, kUnsaid, AVCOL_SPC_UNSPECIFIED, 76, 85, 255, 254, 0, 0},
                           Case{AV_PIX_FMT_YUV420P, kFull, AVCOL_SPC_UNSPECIFIED, 76, 85, 255, 254, 0, 0},
                           Case{AV_PIX_FMT_YUV420P, kLimited, AVCOL_SPC_BT709, 63, 102, 240, 255, 0, 0},
                           Case{AV_PIX_FMT_YUV420P, kLimited, AVCOL_SPC_UNSPECIFIED, 235, 128, 128, 255, 255, 255},
                           Case{AV_PIX_FMT_YUV420P, kLimited, AVCOL_SPC_UNSPECIFIED, 16, 128, 128, 0, 0, 0},
                           Case{AV_PIX_FMT_GRAY8, kUnsaid, AVCOL_SPC_UNSPECIFIED, 200, 0, 0, 200, 200, 200}}) {
    AvPtr<AVFrame> frame = plain(each.format, 64, 48, each.y, each.u, each.v);
    frame->color_range = each.range;
    frame->colorspace = each.space;
    auto picture = DecodedPicture::create(std::move(frame));
    std::vector<std::uint8_t> out(16 * 16 * 3);
    ASSERT_TRUE(picture->to_rgb({0, 0, 64, 48}, 16, 16, out));
    EXPECT_NEAR(out[0], each.red, 4);
    EXPECT_NEAR(out[1], each.green, 4);
    EXPECT_NEAR(out[2], each.blue, 4);
  }
}

TEST(DecodedPicture, Region_IsCutOut_AndWrongOnesRefused) {
  AvPtr<AVFrame> frame = plain(AV_PIX_FMT_NV12, 64, 64, 16, 128, 128);
  for (int y = 32; y < 64; ++y) std::fill_n(frame->data[0] + y * frame->linesize[0] + 32, 32, 235);
  auto picture = DecodedPicture::create(std::move(frame));
  std::vector<std::uint8_t> out(8 * 8 * 3);
  ASSERT_TRUE(picture->to_rgb({32, 32, 32, 32}, 8, 8, out));
  EXPECT_GE(*std::min_element(out.begin(), out.end()), 250);
  ASSERT_TRUE(picture->to_rgb({0, 0, 32, 32}, 8, 8, out));
  EXPECT_LE(*std::max_element(out.begin(), out.end()), 5);
  ASSERT_TRUE(picture->to_rgb({33, 33, 31, 31}, 8, 8, out)) << "odd places too";
  EXPECT_FALSE(picture->to_rgb({0, 0, 65, 64}, 8, 8, out));
  EXPECT_FALSE(picture->to_rgb({-2, 0, 8, 8}, 8, 8, out));
  EXPECT_FALSE(picture->to_rgb({0, 0, 0, 8}, 8, 8, out));
  EXPECT_FALSE(picture->to_rgb({0, 0, 64, 64}, 9, 8, out)) << "the output is too small";
}

TEST(DecodedPicture, StrongReduction_AveragesInsteadOfSkipping) {
  AvPtr<AVFrame> frame = plain(AV_PIX_FMT_YUV420P, 512, 512, 16, 128, 128);
  for (int y = 0; y < 512; ++y)
    for (int x = y % 2; x < 512; x += 2) frame->data[0][y * frame->linesize[0] + x] = 235;
  auto picture = DecodedPicture::create(std::move(frame));
  std::vector<std::uint8_t> out(64 * 64 * 3);
  ASSERT_TRUE(picture->to_rgb({0, 0, 512, 512}, 64, 64, out));
  for (std::uint8_t value : out) ASSERT_NEAR(value, 128, 12) << "a fine chequer is grey from afar";
}

TEST(DecodedPicture, Jpeg_ShowsThePicture_AtMostAsWideAsAsked) {
  Clip clip = encode({.width = 640, .height = 360, .pictures = 1, .number_from = 693});
  auto decoder = Decoder::create(*parameters_of(clip), 1);
  auto picture = (*decoder)->decode_alone(*coded(clip)[0]);
  ASSERT_TRUE(bool(picture) && *picture);
  for (int width : {0, 640, 1000, 320}) {
    std::string jpeg = (*picture)->to_jpeg(width, 90);
    ASSERT_TRUE(jpeg.starts_with("\xFF\xD8")) << width;
    AvPtr<AVPacket> packet = owned(av_packet_alloc());
    av_new_packet(packet.get(), static_cast<int>(jpeg.size()));
    std::copy(jpeg.begin(), jpeg.end(), packet->data);
    AVCodecParameters parameters{};
    parameters.codec_type = AVMEDIA_TYPE_VIDEO;
    parameters.codec_id = AV_CODEC_ID_MJPEG;
    auto reader = Decoder::create(parameters, 1);
    CodedPicture coded_jpeg(std::move(packet));
    auto again = (*reader)->decode_alone(coded_jpeg);
    ASSERT_TRUE(bool(again) && *again);
    EXPECT_EQ((*again)->width(), width == 320 ? 320 : 640);
    EXPECT_EQ((*again)->height(), width == 320 ? 180 : 360);
    if (width != 320) {
      EXPECT_EQ(number_in(**again), 693);
    }
  }
  EXPECT_LT((*picture)->to_jpeg(0, 20).size(), (*picture)->to_jpeg(0, 95).size());
}

}  // namespace
}  // namespace weir::ffmpeg
