#include "sound_encoder.hpp"

#include "weir/forward/failure.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace weir::ffmpeg {

using forward::Kind;

namespace {
constexpr int kUsualRate = 48000;
constexpr int kBitsPerChannel = 64'000;
constexpr Duration kJump = 60ms;  // what lies further from where the sound has come to is not its continuation

Error cannot(std::string what) { return forward::failure(Kind::internal, std::move(what)); }

AvPtr<AVCodecContext> open_decoder(const AVCodecParameters& from) {
  const AVCodec* codec = avcodec_find_decoder(from.codec_id);
  if (codec == nullptr) return nullptr;
  AvPtr<AVCodecContext> context = owned(avcodec_alloc_context3(codec));
  if (avcodec_parameters_to_context(context.get(), &from) < 0) return nullptr;
  context->pkt_timebase = AV_TIME_BASE_Q;
  context->thread_count = 1;
  return avcodec_open2(context.get(), codec, nullptr) < 0 ? nullptr : std::move(context);
}

int rate_of(const AVCodec& codec, int wanted) {
  for (const int* each = codec.supported_samplerates; each != nullptr && *each != 0; ++each)
    if (*each == wanted) return wanted;
  return kUsualRate;
}

AvPtr<AVCodecContext> open_encoder(const AVCodecParameters& from) {
  const AVCodec* codec = avcodec_find_encoder(AV_CODEC_ID_AAC);
  if (codec == nullptr) return nullptr;
  AvPtr<AVCodecContext> context = owned(avcodec_alloc_context3(codec));
  int channels = from.ch_layout.nb_channels == 1 ? 1 : 2;
  av_channel_layout_default(&context->ch_layout, channels);
  context->sample_rate = rate_of(*codec, from.sample_rate);
  context->sample_fmt = AV_SAMPLE_FMT_FLTP;
  context->bit_rate = std::int64_t{kBitsPerChannel} * channels;
  context->time_base = {1, context->sample_rate};
  context->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;  // the hub is told how to decode it before the first packet
  return avcodec_open2(context.get(), codec, nullptr) < 0 ? nullptr : std::move(context);
}
}  // namespace

SoundEncoder::SoundEncoder(AvPtr<AVCodecContext> decoder, AvPtr<AVCodecContext> encoder)
    : decoder_(std::move(decoder)),
      encoder_(std::move(encoder)),
      parameters_(avcodec_parameters_alloc()),
      waiting_(av_audio_fifo_alloc(encoder_->sample_fmt, encoder_->ch_layout.nb_channels, encoder_->sample_rate)) {
  if (parameters_ == nullptr || waiting_ == nullptr ||
      avcodec_parameters_from_context(parameters_.get(), encoder_.get()) < 0)
    throw std::bad_alloc();
}

Result<std::unique_ptr<SoundEncoder>> SoundEncoder::create(const AVCodecParameters& from) {
  AvPtr<AVCodecContext> decoder = open_decoder(from), encoder = open_encoder(from);
  if (decoder == nullptr || encoder == nullptr)
    return forward::failure(Kind::codec_unsupported, fmt::format("this FFmpeg cannot make AAC of the stream's {} audio",
                                                                 avcodec_get_name(from.codec_id)));
  return std::unique_ptr<SoundEncoder>(new SoundEncoder(std::move(decoder), std::move(encoder)));
}

// The next sample that is decoded belongs there.
void SoundEncoder::place(Duration pts) {
  std::int64_t here = av_rescale(pts.count(), encoder_->sample_rate, 1'000'000);
  std::int64_t jump = av_rescale(kJump.count(), encoder_->sample_rate, 1'000'000);
  if (begins_ && std::abs(*begins_ + av_audio_fifo_size(waiting_.get()) - here) <= jump) return;
  av_audio_fifo_reset(waiting_.get());
  begins_ = here;
}

Result<std::vector<AvPtr<AVPacket>>> SoundEncoder::convert(const AVPacket& packet, std::optional<Duration> pts) {
  if (pts) place(*pts);
  std::vector<AvPtr<AVPacket>> packets;
  if (!begins_) return packets;
  AvPtr<AVPacket> fed = owned(av_packet_clone(&packet));
  fed->pts = fed->dts = AV_NOPTS_VALUE;
  avcodec_send_packet(decoder_.get(), fed.get());
  for (;;) {
    AvPtr<AVFrame> frame = owned(av_frame_alloc());
    if (avcodec_receive_frame(decoder_.get(), frame.get()) < 0) break;
    TRY(taken, take(*frame));
  }
  TRY(encoded, encode(packets));
  return packets;
}

// Makes the resampler where what is decoded has changed; false where there is none for it.
bool SoundEncoder::follow(const AVFrame& decoded) {
  bool same = like_ != nullptr && like_->format == decoded.format && like_->sample_rate == decoded.sample_rate &&
              av_channel_layout_compare(&like_->ch_layout, &decoded.ch_layout) == 0;
  if (same) return resampler_ != nullptr;
  like_ = owned(av_frame_clone(&decoded));
  SwrContext* raw = nullptr;
  int failed = swr_alloc_set_opts2(&raw, &encoder_->ch_layout, encoder_->sample_fmt, encoder_->sample_rate,
                                   &like_->ch_layout, static_cast<AVSampleFormat>(like_->format),
                                   like_->sample_rate, 0, nullptr);
  resampler_.reset(raw);
  if (failed < 0 || swr_init(raw) < 0) resampler_.reset();
  return resampler_ != nullptr;
}

AvPtr<AVFrame> SoundEncoder::blank(int samples) const {
  AvPtr<AVFrame> frame = owned(av_frame_alloc());
  frame->nb_samples = samples;
  frame->format = encoder_->sample_fmt;
  frame->sample_rate = encoder_->sample_rate;
  if (av_channel_layout_copy(&frame->ch_layout, &encoder_->ch_layout) < 0 || av_frame_get_buffer(frame.get(), 0) < 0)
    throw std::bad_alloc();
  return frame;
}

Status SoundEncoder::take(const AVFrame& decoded) {
  if (!follow(decoded)) return cannot("the stream's sound cannot be converted");
  int most = swr_get_out_samples(resampler_.get(), decoded.nb_samples);
  if (most <= 0) return ok();
  AvPtr<AVFrame> ready = blank(most);
  auto* from = const_cast<const std::uint8_t**>(decoded.extended_data);
  int samples = swr_convert(resampler_.get(), ready->extended_data, most, from, decoded.nb_samples);
  if (samples < 0) return cannot(fmt::format("the stream's sound cannot be converted: {}", av_words(samples)));
  auto* planes = reinterpret_cast<void**>(ready->extended_data);
  if (av_audio_fifo_write(waiting_.get(), planes, samples) < samples) throw std::bad_alloc();
  return ok();
}

Status SoundEncoder::encode(std::vector<AvPtr<AVPacket>>& packets) {
  const int each = encoder_->frame_size;
  while (av_audio_fifo_size(waiting_.get()) >= each) {
    AvPtr<AVFrame> frame = blank(each);
    av_audio_fifo_read(waiting_.get(), reinterpret_cast<void**>(frame->extended_data), each);
    frame->pts = *begins_;
    *begins_ += each;
    if (int failed = avcodec_send_frame(encoder_.get(), frame.get()); failed < 0)
      return cannot(fmt::format("{} takes no sound: {}", encoder_->codec->name, av_words(failed)));
    for (;;) {
      AvPtr<AVPacket> packet = owned(av_packet_alloc());
      if (avcodec_receive_packet(encoder_.get(), packet.get()) < 0) break;
      av_packet_rescale_ts(packet.get(), encoder_->time_base, AV_TIME_BASE_Q);
      packets.push_back(std::move(packet));
    }
  }
  return ok();
}

}  // namespace weir::ffmpeg
