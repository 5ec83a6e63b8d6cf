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
