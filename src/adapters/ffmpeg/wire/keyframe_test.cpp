#include "keyframe.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace weir::ffmpeg {
namespace {

using Bytes = std::vector<std::uint8_t>;

TEST(Keyframe, Vp8_IsToldByItsTagAndItsStartCode) {
  Bytes key{0x50, 0x42, 0x00, 0x9D, 0x01, 0x2A, 0x40, 0x01, 0xF0, 0x00}, inter{0x51, 0x42, 0x00, 0x00, 0x00, 0x00};
  EXPECT_EQ(key_by_payload(AV_CODEC_ID_VP8, key), true);
  EXPECT_EQ(key_by_payload(AV_CODEC_ID_VP8, inter), false);
  EXPECT_EQ(key_by_payload(AV_CODEC_ID_VP8, Bytes{0x50, 0x42}), false) << "a picture that was cut off";
}

TEST(Keyframe, Vp9_IsToldByItsUncompressedHeader_InEveryProfile) {
  EXPECT_EQ(key_by_payload(AV_CODEC_ID_VP9, Bytes{0x82, 0x49, 0x83, 0x42}), true);   // 10 00 0 0 1 0
  EXPECT_EQ(key_by_payload(AV_CODEC_ID_VP9, Bytes{0x86, 0x00}), false);              // 10 00 0 1 1 0
  EXPECT_EQ(key_by_payload(AV_CODEC_ID_VP9, Bytes{0x88}), false) << "shows a picture that came before";
  EXPECT_EQ(key_by_payload(AV_CODEC_ID_VP9, Bytes{0xA2}), true) << "profile 1";
  EXPECT_EQ(key_by_payload(AV_CODEC_ID_VP9, Bytes{0xB1}), true) << "profile 3 has a reserved bit: 10 11 0 0 0 1";
  EXPECT_EQ(key_by_payload(AV_CODEC_ID_VP9, Bytes{0xB2}), false) << "profile 3: 10 11 0 0 1 0";
  EXPECT_EQ(key_by_payload(AV_CODEC_ID_VP9, Bytes{0x02}), false) << "no VP9 at all";
  EXPECT_EQ(key_by_payload(AV_CODEC_ID_VP9, Bytes{}), false);
}

TEST(Keyframe, Av1_IsToldByItsSequenceHeader) {
  Bytes delimiter{0x12, 0x00}, sequence{0x0A, 0x02, 0x00, 0x00}, frame{0x32, 0x01, 0x10};
  auto joined = [](std::initializer_list<Bytes> all) {
    Bytes out;
    for (const Bytes& each : all) out.insert(out.end(), each.begin(), each.end());
    return out;
  };
  EXPECT_EQ(key_by_payload(AV_CODEC_ID_AV1, joined({delimiter, sequence, frame})), true);
  EXPECT_EQ(key_by_payload(AV_CODEC_ID_AV1, joined({delimiter, frame})), false);
  EXPECT_EQ(key_by_payload(AV_CODEC_ID_AV1, joined({frame, sequence})), true);
  EXPECT_EQ(key_by_payload(AV_CODEC_ID_AV1, Bytes{0x32, 0xFF, 0x7F}), false) << "a size beyond the end";
  EXPECT_EQ(key_by_payload(AV_CODEC_ID_AV1, Bytes{0x30, 0x0A, 0x00}), false) << "a unit without a size is the last";
}

TEST(Keyframe, OfOtherCodecs_NothingIsSaid) {
  EXPECT_EQ(key_by_payload(AV_CODEC_ID_H264, Bytes{0x65}), std::nullopt);
}

}  // namespace
}  // namespace weir::ffmpeg
