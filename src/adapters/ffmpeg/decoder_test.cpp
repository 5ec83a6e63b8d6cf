#include "decoder.hpp"

#include "clip_testing.hpp"

#include <random>

namespace weir::ffmpeg {
namespace {

using namespace testing;

std::unique_ptr<Decoder> decoder_for(const Clip& clip) {
  auto decoder = Decoder::create(*parameters_of(clip), 1);
  EXPECT_TRUE(bool(decoder));
  return *std::move(decoder);
}

struct Kind {
  const char* name;
  ClipSpec spec;
  Clip clip = encode(spec);
};
// Encoded once: that takes longer than all the decoding.
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = [] {
    std::vector<Kind> kinds;
    auto add = [&](const char* name, const ClipSpec& spec) { kinds.push_back({name, spec}); };
    add("H.264", {});
    add("H.264 with B-frames", {.b_frames = 3});
    add("H.264 beside its headers", {.b_frames = 2, .global_header = true});
    add("H.265", {.encoder = "libx265", .pictures = 30});
    add("H.265 with B-frames", {.encoder = "libx265", .pictures = 30, .b_frames = 3});
    add("MJPEG", {.encoder = "mjpeg", .format = AV_PIX_FMT_YUVJ420P});
    add("MPEG-4 with B-frames", {.encoder = "mpeg4", .b_frames = 2});
    return kinds;
  }();
  return all;
}

TEST(Decoder, Pictures_ComeInPresentationOrder_WithTheNumberAndTimesOfTheirOwnPacket) {
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.name);
    const Clip& clip = kind.clip;
    auto decoder = decoder_for(clip);
    auto packets = coded(clip);
    int next = 0;
    for (const auto& packet : packets) {
      auto pictures = decoder->decode(*packet);
      ASSERT_TRUE(bool(pictures));
      for (const PicturePtr& picture : *pictures) {
        EXPECT_EQ(number_in(*picture), next++);
        const CodedPicture& own = *packets[static_cast<size_t>(picture->number)];
        EXPECT_EQ(own.av().pts, number_in(*picture));
        EXPECT_EQ(picture->stream_time, own.stream_time);
        EXPECT_EQ(picture->received, own.received);
      }
    }
    EXPECT_GE(next, kind.spec.pictures - 5) << "only what waits for reordering may be missing";
    EXPECT_EQ(decoder->width(), 320);
    EXPECT_EQ(decoder->height(), 240);
  }
}

TEST(Decoder, KeyPacketAlone_GivesItsOwnPicture_WithoutDelay) {
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.name);
    const Clip& clip = kind.clip;
    auto decoder = decoder_for(clip);
    int keys = 0;
    for (const auto& packet : coded(clip)) {
      if (!packet->key) continue;
      ++keys;
      auto picture = decoder->decode_alone(*packet);
      ASSERT_TRUE(bool(picture));
      ASSERT_NE(*picture, nullptr);
      EXPECT_EQ((*picture)->number, packet->number);
      EXPECT_EQ(number_in(**picture), packet->av().pts);
    }
    EXPECT_GE(keys, kind.spec.pictures / kind.spec.group);
  }
}

TEST(Decoder, AloneAndRunning_MayAlternate) {
  Clip clip = encode({.b_frames = 2});
  auto decoder = decoder_for(clip);
  auto packets = coded(clip);
  for (int round = 0; round < 3; ++round) {
    size_t out = 0;
    for (size_t i = 0; i < 10; ++i) {
      auto pictures = decoder->decode(*packets[i]);
      ASSERT_TRUE(bool(pictures));
      for (const auto& picture : *pictures) EXPECT_EQ(number_in(*picture), static_cast<int>(out++));
    }
    EXPECT_GE(out, 7u);
    auto key = std::find_if(packets.begin() + 5, packets.end(), [](const auto& packet) { return packet->key; });
    auto picture = decoder->decode_alone(**key);
    ASSERT_TRUE(bool(picture));
    ASSERT_NE(*picture, nullptr);
    EXPECT_EQ(number_in(**picture), (*key)->av().pts);
  }
}

TEST(Decoder, SizeThatChanges_IsFollowed) {
  Clip small = encode({.pictures = 10}), large = encode({.width = 640, .height = 480, .pictures = 10});
  auto decoder = decoder_for(small);
  for (const auto& packet : coded(small)) ASSERT_TRUE(bool(decoder->decode(*packet)));
  EXPECT_EQ(decoder->width(), 320);
  size_t seen = 0;
  for (const auto& packet : coded(large)) {
    packet->number += 10;
    auto pictures = decoder->decode(*packet);
    ASSERT_TRUE(bool(pictures));
    for (const auto& picture : *pictures) seen += picture->width() == 640 && picture->height() == 480;
  }
  EXPECT_GE(seen, 9u);
  EXPECT_EQ(decoder->width(), 640);
}

// 30 bytes that announce 16000 x 16000 pixels, and a macroblock of them: damage to a parameter set looks the same.
TEST(Decoder, PictureLargerThanAnyCameras_IsNotMade_AndTheStreamGoesOn) {
  constexpr std::string_view kHuge(
      "\0\0\1\x67\x42\xC0\x33\xD9\x40\x0F\xA0\x01\xF4\x64\0\0\1\x68\xCE\x38\x80\0\0\1\x65\x88\x84\x93\xFF\x80", 30);
  AvPtr<AVPacket> bytes = owned(av_packet_alloc());
  ASSERT_EQ(av_new_packet(bytes.get(), kHuge.size()), 0);
  std::copy(kHuge.begin(), kHuge.end(), bytes->data);
  CodedPicture huge(std::move(bytes));
  Clip clip = encode({.pictures = 10});
  auto decoder = decoder_for(clip);
  auto picture = decoder->decode_alone(huge);
  ASSERT_TRUE(bool(picture));
  EXPECT_EQ(*picture, nullptr);
  size_t seen = 0;
  for (const auto& packet : coded(clip)) {
    auto pictures = decoder->decode(*packet);
    ASSERT_TRUE(bool(pictures));
    seen += pictures->size();
  }
  EXPECT_GE(seen, 9u);
}

TEST(Decoder, IntraRefresh_HasNoKeyPacketAfterTheFirst_AndIsDecodedFromTheMiddle) {
  Clip clip = encode({.pictures = 80, .group = 20, .x264 = "intra-refresh=1"});
  auto packets = coded(clip);
  for (size_t i = 1; i < packets.size(); ++i) EXPECT_FALSE(packets[i]->key) << i;
  auto decoder = decoder_for(clip);
  int last = -1;
  for (size_t i = 15; i < packets.size(); ++i) {
    auto pictures = decoder->decode(*packets[i]);
    ASSERT_TRUE(bool(pictures));
    for (const auto& picture : *pictures) last = number_in(*picture);
  }
  EXPECT_EQ(last, 79);
}

TEST(Decoder, StreamWithoutKeyPacketsAndHints_IsShownAsItIs_AfterAWhile) {
  for (const char* encoder : {"libx264", "libx265", "mpeg4"}) {
    SCOPED_TRACE(encoder);
    Clip clip = encode({.encoder = encoder, .pictures = 40, .fps = 2, .group = 400});
    auto packets = coded(clip);
    auto decoder = decoder_for(clip);
    size_t before = 0, after = 0;
    ASSERT_TRUE(bool(decoder->decode(*packets[0])));  // its parameter sets
    decoder->restart();
    for (size_t i = 1; i < packets.size(); ++i) {
      auto pictures = decoder->decode(*packets[i]);
      ASSERT_TRUE(bool(pictures)) << i;
      (packets[i]->stream_time < 12s ? before : after) += pictures->size();
    }
    EXPECT_EQ(before, 0u);
    EXPECT_GE(after, 11u);
  }
}

// Some of FFmpeg's decoders make up what a picture in the middle of a group refers to.
TEST(Decoder, JoinedInTheMiddleOfAGroup_ShowsNothingBeforeTheNextKeyPacket_AndThenNothingDamaged) {
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.name);
    auto packets = coded(kind.clip);
    auto decoder = decoder_for(kind.clip);
    ASSERT_TRUE(bool(decoder->decode(*packets[0])));  // its parameter sets
    decoder->restart();
    std::optional<std::int64_t> key;
    size_t shown = 0;
    for (size_t i = 1; i < packets.size(); ++i) {
      if (packets[i]->key && !key) key = packets[i]->number;
      auto pictures = decoder->decode(*packets[i]);
      ASSERT_TRUE(bool(pictures));
      for (const PicturePtr& picture : *pictures) {
        ++shown;
        EXPECT_TRUE(key && picture->number >= *key) << picture->number;
        EXPECT_EQ(number_in(*picture), packets[static_cast<size_t>(picture->number)]->av().pts);
      }
    }
    ASSERT_TRUE(key.has_value());
    EXPECT_GE(shown + 8, packets.size() - static_cast<size_t>(*key)) << "all but what leads the key picture or waits";
  }
}

TEST(Decoder, DamagedPackets_NeverCrash_AndPicturesComeBack) {
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.name);
    const Clip& clip = kind.clip;
    auto packets = coded(clip);
    std::mt19937 random(7);
    for (int round = 0; round < 4; ++round) {
      auto decoder = decoder_for(clip);
      for (size_t i = 0; i < packets.size(); ++i) {
        AvPtr<AVPacket> damaged = copy(packets[i]->av());
        for (int hits = 0; i < 30 && hits < 6; ++hits)
          damaged->data[random() % static_cast<unsigned>(damaged->size)] = static_cast<std::uint8_t>(random());
        if (i < 30 && random() % 4 == 0) av_shrink_packet(damaged.get(), static_cast<int>(random() % 40));
        CodedPicture packet(std::move(damaged));
        packet.number = packets[i]->number;
        packet.key = packets[i]->key;
        packet.stream_time = packets[i]->stream_time;
        auto pictures = decoder->decode(packet);
        if (!pictures) {
          EXPECT_EQ(pictures.error().reason, "DECODE_ERROR");
          decoder->restart();
        }
        EXPECT_TRUE(!packet.key || bool(decoder->decode_alone(packet)));
      }
    }
  }
}

TEST(Decoder, NothingDecodableForThreeSeconds_IsADecodeError) {
  Clip clip = encode({.pictures = 60});
  auto decoder = decoder_for(clip);
  std::optional<Duration> failed_at;
  for (const auto& packet : coded(clip)) {
    AvPtr<AVPacket> noise = copy(packet->av());
    std::fill_n(noise->data + 5, noise->size - 5, 0x55);
    CodedPicture bad(std::move(noise));
    bad.key = packet->key;
    bad.number = packet->number;
    bad.stream_time = packet->stream_time;
    auto pictures = decoder->decode(bad);
    if (pictures) continue;
    EXPECT_EQ(pictures.error().reason, "DECODE_ERROR");
    failed_at = bad.stream_time;
    break;
  }
  ASSERT_TRUE(failed_at.has_value());
  EXPECT_EQ(*failed_at, 3s);
}

TEST(Decoder, UnknownCodec_IsUnsupported) {
  AVCodecParameters parameters{};
  parameters.codec_type = AVMEDIA_TYPE_VIDEO;
  parameters.codec_id = AV_CODEC_ID_NONE;
  auto decoder = Decoder::create(parameters, 1);
  ASSERT_FALSE(bool(decoder));
  EXPECT_EQ(decoder.error().reason, "CODEC_UNSUPPORTED");
}

}  // namespace
}  // namespace weir::ffmpeg
