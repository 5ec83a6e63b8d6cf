#include "sound_encoder.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace weir::ffmpeg {
namespace {

constexpr int kRate = 8000, kSamples = 160;  // of a packet: 20 ms
constexpr std::uint8_t kHigh = 0x90, kLow = 0x10;  // a loud square wave, in G.711

Parameters telephone() {
  Parameters from(avcodec_parameters_alloc());
  from->codec_type = AVMEDIA_TYPE_AUDIO;
  from->codec_id = AV_CODEC_ID_PCM_MULAW;
  from->sample_rate = kRate;
  av_channel_layout_default(&from->ch_layout, 1);
  return from;
}

AvPtr<AVPacket> tone() {
  AvPtr<AVPacket> packet = owned(av_packet_alloc());
  EXPECT_GE(av_new_packet(packet.get(), kSamples), 0);
  for (int i = 0; i < kSamples; ++i) packet->data[i] = i / 10 % 2 == 0 ? kHigh : kLow;
  return packet;
}

// The loudest sample of what the packet shows.
float loudest(AVCodecContext& decoder, const AVPacket& packet) {
  float most = 0;
  EXPECT_GE(avcodec_send_packet(&decoder, &packet), 0);
  AvPtr<AVFrame> frame = owned(av_frame_alloc());
  while (avcodec_receive_frame(&decoder, frame.get()) >= 0)
    for (int i = 0; i < frame->nb_samples; ++i)
      most = std::max(most, std::abs(reinterpret_cast<const float*>(frame->extended_data[0])[i]));
  return most;
}

TEST(SoundEncoder, WhatComesOut_IsAac_WithTheSoundAndTheTimesOfWhatCameIn) {
  auto encoder = SoundEncoder::create(*telephone());
  ASSERT_TRUE(encoder) << encoder.error().message;
  const AVCodecParameters& to = (*encoder)->parameters();
  EXPECT_EQ(to.codec_id, AV_CODEC_ID_AAC);
  EXPECT_GT(to.extradata_size, 0) << "a hub is told how to decode it before it comes";
  EXPECT_EQ((*encoder)->step(), 128ms);
  AvPtr<AVCodecContext> decoder = owned(avcodec_alloc_context3(avcodec_find_decoder(AV_CODEC_ID_AAC)));
  ASSERT_GE(avcodec_parameters_to_context(decoder.get(), &to), 0);
  ASSERT_GE(avcodec_open2(decoder.get(), nullptr, nullptr), 0);

  constexpr Duration kBegin = 100s;
  std::vector<Duration> times;
  float loud = 0;
  for (int i = 0; i < 100; ++i) {
    auto packets = (*encoder)->convert(*tone(), kBegin + i * 20ms);
    ASSERT_TRUE(packets) << packets.error().message;
    for (const auto& each : *packets) {
      times.push_back(Duration(each->pts));
      loud = std::max(loud, loudest(*decoder, *each));
    }
  }
  ASSERT_GE(times.size(), 12u) << "two seconds";
  EXPECT_EQ(times[0], kBegin - 128ms) << "AAC begins one packet early";
  for (size_t i = 1; i < times.size(); ++i) EXPECT_EQ(times[i] - times[i - 1], 128ms);
  EXPECT_GT(loud, 0.05F);
}

TEST(SoundEncoder, TimesThatJump_JumpInWhatComesOut_AndOnesThatAreMissingGoOn) {
  auto encoder = SoundEncoder::create(*telephone());
  ASSERT_TRUE(encoder) << encoder.error().message;
  std::optional<Duration> last;
  Duration widest{};
  for (int i = 0; i < 300; ++i) {
    Duration pts = i * 20ms + (i < 150 ? 0s : 5s);
    auto packets = (*encoder)->convert(*tone(), i % 3 == 1 ? std::nullopt : std::optional(pts));
    ASSERT_TRUE(packets) << packets.error().message;
    for (const auto& each : *packets) {
      if (last) widest = std::max(widest, Duration(each->pts) - *last);
      last = Duration(each->pts);
    }
  }
  EXPECT_NEAR(seconds(widest), 5.1, 0.15);
  EXPECT_NEAR(seconds(*last), 10.7, 0.25) << "three packets of 128 ms may still be under way";
}

TEST(SoundEncoder, ACodecThatIsNotKnown_IsNamed) {
  Parameters from = telephone();
  from->codec_id = AV_CODEC_ID_NONE;
  auto encoder = SoundEncoder::create(*from);
  ASSERT_FALSE(encoder);
  EXPECT_NE(encoder.error().message.find("none"), std::string::npos) << encoder.error().message;
}

}  // namespace
}  // namespace weir::ffmpeg
