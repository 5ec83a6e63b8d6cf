#include "coded_picture.hpp"

#include "clip_testing.hpp"

namespace weir::ffmpeg {
namespace {

using namespace testing;
using namespace std::string_literals;

constexpr std::string_view kStart("\0\0\1", 3);
const std::string kTiming = "\x06\x01\x01\x12\x80"s;    // an SEI that is no recovery point
const std::string kRecovery = "\x06\x06\x01\xC4\x80"s;  // one that says: from this very picture on
const std::string kSlice = "\x41\x9A\x24\x6C\x41\x4F"s;  // of a P picture

// The units as one packet, with start codes or with four bytes of length before each.
bool starts(const std::vector<std::string>& units, bool lengths = false) {
  std::string bytes;
  for (const std::string& unit : units) {
    if (lengths)
      for (int i = 3; i >= 0; --i) bytes += static_cast<char>(unit.size() >> (8 * i));
    else
      bytes += kStart;
    bytes += unit;
  }
  std::uint8_t header[] = {1, 0x64, 0, 0x1F, 0xFF};  // "four bytes of length"
  AVCodecParameters parameters{};
  parameters.codec_id = AV_CODEC_ID_H264;
  if (lengths) {
    parameters.extradata = header;
    parameters.extradata_size = sizeof header;
  }
  AvPtr<AVPacket> packet = owned(av_packet_alloc());
  if (av_new_packet(packet.get(), static_cast<int>(bytes.size())) < 0) throw std::bad_alloc();
  std::ranges::copy(bytes, packet->data);
  return starts_alone(*packet, parameters);
}

TEST(CodedPicture, RecoveryPointInThePicture_StartsAlone_InBothForms) {
  for (bool lengths : {false, true}) {
    EXPECT_TRUE(starts({kRecovery, kSlice}, lengths));
    EXPECT_TRUE(starts({kTiming, kRecovery, kSlice}, lengths));
    EXPECT_TRUE(starts({"\x06\x01\x01\x12\x06\x01\xC4\x80"s, kSlice}, lengths)) << "two messages in one unit";
    EXPECT_FALSE(starts({kTiming, kSlice}, lengths));
    EXPECT_FALSE(starts({"\x06\x06\x01\x24\x80"s, kSlice}, lengths)) << "recovers some pictures later";
    EXPECT_TRUE(starts({kTiming, "\x65\x88\x84\x21"s}, lengths)) << "IDR";
  }
}

// What follows the SEI's end read like a recovery point: the slice's own bytes, or the start code before it.
TEST(CodedPicture, SeiThatEnds_IsNotReadOnIntoTheSlice) {
  for (bool lengths : {false, true}) {
    EXPECT_FALSE(starts({kTiming, "\x41\x06\x01\xC4\x80\x06\x01\xC4\x80"s}, lengths));
    EXPECT_FALSE(starts({"\x06\x01\x03\x12\x80"s, "\x06\x01\xC4\x80\x80"s.insert(0, "\x41")}, lengths))
        << "an SEI that is shorter than it says";
    EXPECT_FALSE(starts({"\x06\x01\x01\x12\x80\0"s, "\x41\x06\x06\x01\xC4\x80"s}, lengths)) << "a zero before it";
  }
}

// 00 00 03 stands for 00 00: a message is as long as its bytes were before.
TEST(CodedPicture, EmulationPrevention_CountsForNothing) {
  for (bool lengths : {false, true}) {
    EXPECT_TRUE(starts({"\x06\x01\x04\x12\0\0\x03\x01\x06\x01\xC4\x80"s, kSlice}, lengths));
    EXPECT_FALSE(starts({"\x06\x01\x04\x12\0\0\x03\x05\x01\x06\x06\x01\xC4\x80"s, kSlice}, lengths));
  }
}

TEST(CodedPicture, PictureTiming_MakesNoKeyOfAPPicture) {
  for (const char* options : {"pic-struct=1", "pic-struct=1:aud=1:nal-hrd=vbr:vbv-maxrate=4000:vbv-bufsize=4000"})
    for (bool beside : {false, true}) {
      Clip clip = encode(
          {.width = 640, .height = 480, .pictures = 100, .group = 50, .x264 = options, .global_header = beside});
      auto packets = coded(clip);
      for (size_t i = 0; i < packets.size(); ++i) EXPECT_EQ(packets[i]->key, i % 50 == 0) << options << ": " << i;
    }
}

// FFmpeg's reader of RTP does not mark them.
TEST(CodedPicture, Vp9_IsToldByItsOwnHeader_NotByTheFlag) {
  AVCodecParameters* vp9 = avcodec_parameters_alloc();
  vp9->codec_id = AV_CODEC_ID_VP9;
  for (auto [first, key] : {std::pair{0x82, true}, {0x86, false}}) {
    AvPtr<AVPacket> packet = owned(av_packet_alloc());
    ASSERT_GE(av_new_packet(packet.get(), 4), 0);
    packet->data[0] = static_cast<std::uint8_t>(first);
    EXPECT_EQ(starts_alone(*packet, *vp9), key) << first;
  }
  avcodec_parameters_free(&vp9);
}

}  // namespace
}  // namespace weir::ffmpeg
