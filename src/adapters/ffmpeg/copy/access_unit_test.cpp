#include "access_unit.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weir::ffmpeg {
namespace {

using namespace std::string_literals;

// A slice's first byte tells whether it is the picture's first.
std::string nal(int type, const std::string& bytes = "\x88") { return "\0\0\0\1"s + static_cast<char>(type) + bytes; }

std::string bytes_of(const AvPtr<AVPacket>& packet) {
  return {reinterpret_cast<const char*>(packet->data), static_cast<size_t>(packet->size)};
}

TEST(AccessUnit, PiecesOfOneTime_AreOnePicture) {
  AccessUnit unit;
  unit.append(900, nal(7) + nal(8));
  EXPECT_FALSE(unit.ends_before(900, nal(5)));
  unit.append(900, nal(5, "\x88 first part, "));
  unit.append(900, "second part, without a start code");
  EXPECT_TRUE(unit.ends_before(4500, nal(1)));
  EXPECT_TRUE(unit.key());
  AvPtr<AVPacket> picture = unit.finish();
  EXPECT_EQ(bytes_of(picture), nal(7) + nal(8) + nal(5, "\x88 first part, ") + "second part, without a start code");
  EXPECT_EQ(picture->pts, 900);
  EXPECT_NE(picture->flags & AV_PKT_FLAG_KEY, 0);
  EXPECT_TRUE(unit.empty());
}

TEST(AccessUnit, APictureThatNeedsOthers_IsNotKey) {
  AccessUnit unit;
  unit.append(1, nal(9) + nal(6) + nal(1));
  EXPECT_FALSE(unit.key());
  unit.finish();
  unit.append(2, nal(5));
  EXPECT_TRUE(unit.key());
  unit.finish();
  unit.append(3, nal(1));
  EXPECT_FALSE(unit.key()) << "the last picture's does not count";
}

TEST(AccessUnit, ParametersAlone_MakeNoKeyframe_ARecoveryPointDoes) {
  AccessUnit unit;
  unit.append(1, nal(7) + nal(8) + nal(1));
  EXPECT_FALSE(unit.key());
  unit.finish();
  unit.append(2, nal(7) + nal(8) + nal(6, "\x06\x01\x80") + nal(1));
  EXPECT_TRUE(unit.key());
}

TEST(AccessUnit, AStreamWhoseTimeStandsStill_IsTooLargeAtSomePoint) {
  AccessUnit unit;
  std::string piece(1 << 20, 'x');
  for (int i = 0; i < 17; ++i) unit.append(1, piece);
  EXPECT_TRUE(unit.too_large());
}

TEST(AccessUnit, AKeyframeWhoseBeginningIsMissing_IsNotKey) {
  AccessUnit unit;
  unit.append(1, nal(5, "\x11") + nal(5, "\x12"));
  EXPECT_FALSE(unit.key());
}

TEST(AccessUnit, TwoPicturesUnderOneTime_AreToldApartByTheirDelimiter) {
  AccessUnit unit;
  unit.append(900, nal(9));
  EXPECT_FALSE(unit.ends_before(900, nal(7))) << "no slice has come yet";
  unit.append(900, nal(1));
  EXPECT_FALSE(unit.ends_before(900, nal(1)));
  EXPECT_TRUE(unit.ends_before(900, nal(9)));
  EXPECT_TRUE(unit.ends_before(900, nal(7)));
}

// H.265's header has two bytes, the type in the first.
std::string hevc(int type, const std::string& bytes = "\x80") {
  return "\0\0\0\1"s + static_cast<char>(type << 1) + "\x01" + bytes;
}

TEST(AccessUnit, OfHevc_APictureThatStartsAtRandom_IsKey_AndItsDelimiterEndsTheLast) {
  AccessUnit unit(AccessUnit::Codec::hevc);
  unit.append(1, hevc(32) + hevc(33) + hevc(34) + hevc(19));
  EXPECT_TRUE(unit.key());
  EXPECT_TRUE(unit.ends_before(1, hevc(35)));
  EXPECT_FALSE(unit.ends_before(1, hevc(19, "\x01"))) << "another slice of the same picture";
  unit.finish();
  unit.append(2, hevc(1));
  EXPECT_FALSE(unit.key());
  unit.finish();
  unit.append(3, hevc(21, "\x01"));
  EXPECT_FALSE(unit.key()) << "its first slice is missing";
}

TEST(AccessUnit, LargePictures_GrowAndKeepTheirBytes) {
  AccessUnit unit;
  for (int round = 0; round < 3; ++round) {
    std::string expected = nal(5);
    unit.append(round, expected);
    for (int i = 0; i < 500; ++i) {
      std::string piece(1400, static_cast<char>('a' + i % 26));
      unit.append(round, piece);
      expected += piece;
    }
    EXPECT_EQ(bytes_of(unit.finish()), expected);
  }
}

}  // namespace
}  // namespace weir::ffmpeg
