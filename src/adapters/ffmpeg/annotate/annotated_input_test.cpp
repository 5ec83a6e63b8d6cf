#include "encoder.hpp"
#include "picture_decoder.hpp"

#include "weir/base/clock.hpp"
#include "weir/ffmpeg/annotate.hpp"

#include <gtest/gtest.h>

#include <deque>

namespace weir::ffmpeg {
namespace {

constexpr int kWidth = 320, kHeight = 240;

AvPtr<AVFrame> grey(std::int64_t pts) {
  AvPtr<AVFrame> frame = owned(av_frame_alloc());
  frame->width = kWidth;
  frame->height = kHeight;
  frame->format = AV_PIX_FMT_YUV420P;
  frame->pts = pts;
  EXPECT_GE(av_frame_get_buffer(frame.get(), 0), 0);
  for (int plane = 0; plane < 3; ++plane)
    for (int y = 0; y < (plane == 0 ? kHeight : kHeight / 2); ++y)
      std::fill_n(frame->data[plane] + std::ptrdiff_t{y} * frame->linesize[plane], plane == 0 ? kWidth : kWidth / 2, 128);
  return frame;
}

// A publisher's stream: 25 grey pictures a second with a keyframe every ten, a packet of sound after each, as fast as
// they are read. The bytes of the pictures that it sent are remembered.
class Publisher final : public CopyInput {
 public:
  Publisher() {
    EncoderConfig config{.width = kWidth, .height = kHeight, .fps = 25, .keyframe = 400ms, .hardware = false};
    encoder_ = *Encoder::create(config, *grey(0));
    make();
  }
  Result<CopyFacts> open(Duration) override {
    auto format = std::make_shared<CodedFormat>();
    format->video = copy_of(*encoder_->parameters());
    format->audio = Parameters(avcodec_parameters_alloc());
    format->audio->codec_id = AV_CODEC_ID_AAC;
    return CopyFacts{.format = format, .video = "h264", .audio = "aac", .width = kWidth, .height = kHeight, .peer = ""};
  }
  Result<CopyPacketPtr> read() override {
    if (ready_.empty()) make();
    CopyPacketPtr packet = std::move(ready_.front());
    ready_.pop_front();
    return packet;
  }
  void set_meanwhile(std::function<void()>) override {}
  void interrupt() override {}
  static bool is_sound(const CopyPacket& packet) { return packet.track == forward::Track::audio; }

 private:
  void make() {
    Duration pts = number_++ * 40ms;
    auto packets = *encoder_->encode(*grey(pts.count()));
    for (AvPtr<AVPacket>& each : packets) {
      bool key = (each->flags & AV_PKT_FLAG_KEY) != 0;
      ready_.push_back(wrapped(std::move(each), forward::Track::video, key, pts));
    }
    AvPtr<AVPacket> sound = owned(av_packet_alloc());
    EXPECT_GE(av_new_packet(sound.get(), 10), 0);
    ready_.push_back(wrapped(std::move(sound), forward::Track::audio, true, pts));
  }
  static CopyPacketPtr wrapped(AvPtr<AVPacket> packet, forward::Track track, bool key, Duration pts) {
    auto made = std::make_unique<CodedPacket>();
    made->track = track;
    made->key = key;
    made->pts = pts;
    made->bytes = static_cast<size_t>(packet->size);
    made->packet = std::move(packet);
    return made;
  }
  std::unique_ptr<Encoder> encoder_;
  std::deque<CopyPacketPtr> ready_;
  int number_ = 0;
};

// A publisher of grey pictures in a codec that RTMP does not carry, and of telephone sound.
class ForeignPublisher final : public CopyInput {
 public:
  ForeignPublisher() : encoder_(owned(avcodec_alloc_context3(avcodec_find_encoder(AV_CODEC_ID_MPEG4)))) {
    encoder_->width = kWidth;
    encoder_->height = kHeight;
    encoder_->pix_fmt = AV_PIX_FMT_YUV420P;
    encoder_->time_base = {1, 25};
    encoder_->gop_size = 10;
    encoder_->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    EXPECT_GE(avcodec_open2(encoder_.get(), nullptr, nullptr), 0);
  }
  Result<CopyFacts> open(Duration) override {
    auto format = std::make_shared<CodedFormat>();
    format->video = Parameters(avcodec_parameters_alloc());
    EXPECT_GE(avcodec_parameters_from_context(format->video.get(), encoder_.get()), 0);
    format->audio = Parameters(avcodec_parameters_alloc());
    format->audio->codec_type = AVMEDIA_TYPE_AUDIO;
    format->audio->codec_id = AV_CODEC_ID_PCM_MULAW;
    format->audio->sample_rate = 8000;
    av_channel_layout_default(&format->audio->ch_layout, 1);
    return CopyFacts{.format = format, .video = "mpeg4", .audio = "pcm_mulaw", .peer = ""};
  }
  // A picture and 40 ms of sound in turn.
  Result<CopyPacketPtr> read() override {
    auto made = std::make_unique<CodedPacket>();
    made->pts = number_ / 2 * 40ms;
    made->packet = owned(av_packet_alloc());
    bool sound = number_++ % 2 == 1;
    made->track = sound ? forward::Track::audio : forward::Track::video;
    if (sound) {
      EXPECT_GE(av_new_packet(made->packet.get(), 320), 0);
      std::fill_n(made->packet->data, 320, kSilence);
    } else {
      AvPtr<AVFrame> frame = grey(number_ / 2);
      EXPECT_GE(avcodec_send_frame(encoder_.get(), frame.get()), 0);
      EXPECT_GE(avcodec_receive_packet(encoder_.get(), made->packet.get()), 0);
    }
    made->key = sound || (made->packet->flags & AV_PKT_FLAG_KEY) != 0;
    made->bytes = static_cast<size_t>(made->packet->size);
    return CopyPacketPtr(std::move(made));
  }
  void set_meanwhile(std::function<void()>) override {}
  void interrupt() override {}

 private:
  static constexpr std::uint8_t kSilence = 0xFF;
  AvPtr<AVCodecContext> encoder_;
  int number_ = 0;
};

// Sees one box in every picture.
class OneBox final : public Looks {
 public:
  bool due(Instant) override { return true; }
  void offer(PicturePtr picture) override {
    EXPECT_EQ(picture->luma()[50 * picture->luma_stride() + 50], 128) << "looked at before it was drawn into";
    newest_ = std::make_shared<Sighting>(Sighting{.detections = {{"person", 0.9, {50, 50, 150, 150}}},
                                                  .width = picture->width(),
                                                  .height = picture->height(),
                                                  .stream_time = picture->stream_time});
  }
  std::shared_ptr<const Sighting> newest() const override { return newest_; }

 private:
  std::shared_ptr<const Sighting> newest_;
};

class AnnotateTest : public ::testing::Test {
 protected:
  AnnotateConfig config() {
    return {.keyframe = 1s,
            .hardware = false,
            .looks = &looks_,
            .changed = [this](bool annotating, const std::string& why) {
              changes_.push_back(annotating);
              EXPECT_FALSE(why.empty());
            }};
  }
  // The light of a decoded picture at a place.
  static int light(const AVFrame& frame, int x, int y) {
    return frame.data[0][std::ptrdiff_t{y} * frame.linesize[0] + x];
  }
  static const AVPacket& coded(const CopyPacket& packet) { return *static_cast<const CodedPacket&>(packet).packet; }
  OneBox looks_;
  std::vector<bool> changes_;
};

TEST_F(AnnotateTest, PicturesKeepTheirTimes_AreDrawnInto_AndTheSoundPasses) {
  Annotator annotator(config());
  auto input = annotator.wrap(std::make_unique<Publisher>());
  auto facts = input->open(5s);
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->video, "h264");
  EXPECT_EQ(facts->audio, "aac");
  const auto& format = static_cast<const CodedFormat&>(*facts->format);
  ASSERT_NE(format.audio, nullptr);
  auto decoder = PictureDecoder::create(*format.video);
  int pictures = 0, sounds = 0;
  for (int i = 0; i < 200; ++i) {
    auto packet = *input->read();
    if (i == 0) {
      EXPECT_TRUE(packet->key);
      EXPECT_EQ(packet->track, forward::Track::video);
    }
    if (Publisher::is_sound(*packet)) {
      EXPECT_EQ(packet->bytes, 10u);
      EXPECT_EQ(packet->pts, Duration(sounds++ * 40ms)) << "not one was lost";
      continue;
    }
    EXPECT_EQ(packet->pts, Duration(pictures * 40ms));
    auto frames = decoder->decode(coded(*packet), packet->pts, 40ms);
    ASSERT_EQ(frames.size(), 1u);
    EXPECT_GT(std::abs(light(*frames[0], 100, 50) - 128), 15) << "the upper edge of the box";
    EXPECT_NEAR(light(*frames[0], 100, 100), 128, 8) << "within it";
    ++pictures;
  }
  EXPECT_GE(pictures, 95);
  EXPECT_EQ(changes_, std::vector<bool>{true});
}

TEST_F(AnnotateTest, TooSlow_PicturesPassAsTheyCame_FromAKeyframeOn_AndItComesBackAfterARest) {
  AnnotateConfig slow = config();
  slow.limits = {.lag_max = -1s, .patience = 0s, .rest = 100ms, .rest_max = 100ms};
  Annotator annotator(slow);
  auto input = annotator.wrap(std::make_unique<Publisher>());
  auto facts = input->open(5s);
  ASSERT_TRUE(facts) << facts.error().message;
  std::unique_ptr<PictureDecoder> decoder =
      PictureDecoder::create(*static_cast<const CodedFormat&>(*facts->format).video);
  Instant until = boot_now() + 20s;
  int drawn = 0, plain = 0;
  std::optional<Duration> last;
  while (changes_.size() < 4 && boot_now() < until) {
    auto packet = *input->read();
    if (Publisher::is_sound(*packet)) continue;
    EXPECT_GT(*packet->pts, last.value_or(-1s)) << "times never run backwards";
    last = packet->pts;
    // One decoder, which knows nothing of the changes, understands both.
    for (const auto& frame : decoder->decode(coded(*packet), packet->pts, 40ms))
      ++(std::abs(light(*frame, 100, 50) - 128) > 15 ? drawn : plain);
  }
  EXPECT_EQ(changes_, (std::vector<bool>{true, false, true, false}));
  EXPECT_GT(drawn, 0);
  EXPECT_GT(plain, 0);
}

TEST_F(AnnotateTest, ForRtmp_WhatItDoesNotCarryIsEncodedAgain_AlsoWhereNothingIsDrawn) {
  for (bool draw : {false, true}) {
    AnnotateConfig rtmp = config();
    rtmp.draw = draw;
    rtmp.for_rtmp = true;
    std::vector<std::string> said;
    rtmp.encodes_for_rtmp = [&](const std::string& what) { said.push_back(what); };
    Annotator annotator(rtmp);
    auto input = annotator.wrap(std::make_unique<ForeignPublisher>());
    auto facts = input->open(5s);
    ASSERT_TRUE(facts) << facts.error().message;
    EXPECT_EQ(facts->video, "h264");
    EXPECT_EQ(facts->audio, "aac");
    EXPECT_EQ(facts->sound_step, 128ms);
    EXPECT_EQ(said, std::vector<std::string>{"mpeg4 as h264, pcm_mulaw as aac"});
    const auto& format = static_cast<const CodedFormat&>(*facts->format);
    EXPECT_EQ(format.audio->codec_id, AV_CODEC_ID_AAC);
    auto decoder = PictureDecoder::create(*format.video);
    int pictures = 0, sounds = 0;
    while (pictures < 50) {
      auto packet = *input->read();
      if (Publisher::is_sound(*packet)) {
        ++sounds;
        continue;
      }
      EXPECT_EQ(packet->pts, Duration(pictures++ * 40ms));
      for (const auto& frame : decoder->decode(coded(*packet), packet->pts, 40ms))
        EXPECT_EQ(std::abs(light(*frame, 100, 50) - 128) > 15, draw) << "the upper edge of the box";
    }
    EXPECT_GE(sounds, 13) << "two seconds";
  }
  EXPECT_EQ(changes_, std::vector<bool>{true}) << "where nothing is drawn, nobody is told that it is";
}

TEST_F(AnnotateTest, ForRtmp_WhatItCarriesPassesAsItCame) {
  AnnotateConfig rtmp = config();
  rtmp.draw = false;
  rtmp.for_rtmp = true;
  rtmp.encodes_for_rtmp = [](const std::string& what) { ADD_FAILURE() << what; };
  Annotator annotator(rtmp);
  auto input = annotator.wrap(std::make_unique<Publisher>());
  Publisher same;
  auto facts = input->open(5s);
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->audio, "aac");
  for (int i = 0; i < 40; ++i) {
    auto packet = *input->read(), expected = *same.read();
    ASSERT_EQ(packet->bytes, expected->bytes);
    EXPECT_EQ(packet->pts, expected->pts);
  }
  EXPECT_TRUE(changes_.empty());
}

TEST_F(AnnotateTest, ForRtmp_AMachineThatIsTooSlow_LeavesPicturesOut_ButForOneASecond) {
  AnnotateConfig slow = config();
  slow.for_rtmp = true;
  slow.limits = {.lag_max = -1s, .patience = 0s, .rest = 1h, .rest_max = 1h};
  int left_out = 0;
  slow.left_out = [&] { ++left_out; };
  Annotator annotator(slow);
  auto input = annotator.wrap(std::make_unique<ForeignPublisher>());
  ASSERT_TRUE(input->open(5s));
  std::vector<Duration> times;
  while (times.size() < 10)
    if (auto packet = *input->read(); !Publisher::is_sound(*packet)) times.push_back(*packet->pts);
  EXPECT_EQ(times[9] - times[8], 1s);
  EXPECT_GE(left_out, 48);
  EXPECT_EQ(changes_, std::vector<bool>{true}) << "it never hands them on as they came";
}

TEST_F(AnnotateTest, AnotherConnection_WithinTheRest_BeginsByPassing) {
  AnnotateConfig slow = config();
  slow.limits = {.lag_max = -1s, .patience = 0s, .rest = 1h, .rest_max = 1h};
  Annotator annotator(slow);
  auto first = annotator.wrap(std::make_unique<Publisher>());
  ASSERT_TRUE(first->open(5s));
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(first->read());
  first.reset();
  auto second = annotator.wrap(std::make_unique<Publisher>());
  auto facts = second->open(5s);
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->video, "h264");
  EXPECT_EQ((*second->read())->pts, Duration(0s));
  EXPECT_EQ(changes_, (std::vector<bool>{true, false})) << "it is said once";
}

}  // namespace
}  // namespace weir::ffmpeg
