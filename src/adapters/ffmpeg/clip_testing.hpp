// For this folder's tests: short clips, encoded on the spot, whose pictures carry their number in their pixels.
// One thread only.
#pragma once

#include "wire/av.hpp"
#include "wire/av_log.hpp"
#include "coded_picture.hpp"

#include <gtest/gtest.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include <cstdlib>
#include <string>
#include <vector>

namespace weir::ffmpeg::testing {

struct ClipSpec {
  const char* encoder = "libx264";
  int width = 320, height = 240, pictures = 50, fps = 10, group = 10, b_frames = 0;
  std::string x264 = {};        // further parameters
  bool global_header = false;   // parameter sets beside the stream, as in MP4
  AVPixelFormat format = AV_PIX_FMT_YUV420P;
  int number_from = 0;
};

struct Clip {
  AvPtr<AVCodecContext> encoder;
  std::vector<AvPtr<AVPacket>> packets;  // in decoding order
};

// Ten squares in a row, black or white: the number's bits.
constexpr int kBits = 10, kSquare = 16;

inline void draw(AVFrame& frame, int number) {
  std::vector<std::uint8_t> slope(static_cast<size_t>(frame.width) + 160);
  for (size_t x = 0; x < slope.size(); ++x) slope[x] = static_cast<std::uint8_t>(40 + x % 160);
  for (int y = 0; y < frame.height; ++y)
    std::copy_n(slope.begin() + (y + number * 5) % 160, frame.width, frame.data[0] + y * frame.linesize[0]);
  for (int plane = 1; plane < 3; ++plane)
    for (int y = 0; y < frame.height / 2; ++y)
      std::fill_n(frame.data[plane] + y * frame.linesize[plane], frame.width / 2, 128);
  for (int bit = 0; bit < kBits; ++bit)
    for (int y = 0; y < kSquare; ++y)
      std::fill_n(frame.data[0] + y * frame.linesize[0] + bit * kSquare, kSquare, (number >> bit & 1) != 0 ? 235 : 16);
}

inline int number_in(const Picture& picture) {
  int number = 0;
  const std::uint8_t* row = picture.luma() + kSquare / 2 * picture.luma_stride();
  for (int bit = 0; bit < kBits; ++bit) number |= (row[bit * kSquare + kSquare / 2] > 128) << bit;
  return number;
}

inline Clip encode(const ClipSpec& spec) {
  take_over_log();
#ifdef __SANITIZE_ADDRESS__
  __lsan::ScopedDisabler x265_leaks_its_parameters;
#endif
  const AVCodec* codec = avcodec_find_encoder_by_name(spec.encoder);
  if (codec == nullptr) throw std::runtime_error("no such encoder");
  Clip clip{owned(avcodec_alloc_context3(codec)), {}};
  AVCodecContext& encoder = *clip.encoder;
  encoder.width = spec.width;
  encoder.height = spec.height;
  encoder.pix_fmt = spec.format;
  encoder.time_base = {1, spec.fps};
  encoder.framerate = {spec.fps, 1};
  encoder.gop_size = spec.group;
  encoder.max_b_frames = spec.b_frames;
  encoder.thread_count = 1;
  encoder.bit_rate = 1'000'000;
  if (spec.global_header) encoder.flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  AvOptions options;
  std::string name = spec.encoder;
  if (name == "libx264" || name == "libx265") {
    options.set("preset", "veryfast");
    std::string more =
        fmt::format("bframes={}:keyint={}:min-keyint={}:scenecut=0", spec.b_frames, spec.group, spec.group);
    if (name == "libx264") more += ":b-adapt=0:rc-lookahead=0:sync-lookahead=0:threads=1";
    if (name == "libx265") more += ":log-level=none:pools=none";
    options.set(name == "libx264" ? "x264-params" : "x265-params", spec.x264.empty() ? more : more + ":" + spec.x264);
  }
  if (avcodec_open2(&encoder, codec, options.get()) < 0) throw std::runtime_error("the encoder does not start");
  auto take = [&] {
    for (;;) {
      AvPtr<AVPacket> packet = owned(av_packet_alloc());
      if (avcodec_receive_packet(&encoder, packet.get()) < 0) return;
      clip.packets.push_back(std::move(packet));
    }
  };
  for (int i = 0; i < spec.pictures; ++i) {
    AvPtr<AVFrame> frame = owned(av_frame_alloc());
    frame->width = spec.width;
    frame->height = spec.height;
    frame->format = spec.format;
    frame->pts = i;
    if (av_frame_get_buffer(frame.get(), 0) < 0) throw std::bad_alloc();
    draw(*frame, spec.number_from + i);
    avcodec_send_frame(&encoder, frame.get());
    take();
  }
  avcodec_send_frame(&encoder, nullptr);
  take();
  return clip;
}

inline AvPtr<AVPacket> copy(const AVPacket& packet) {
  AvPtr<AVPacket> own = owned(av_packet_clone(&packet));
  if (av_packet_make_writable(own.get()) < 0) throw std::bad_alloc();
  return own;
}

struct FreeParameters {
  void operator()(AVCodecParameters* parameters) const { avcodec_parameters_free(&parameters); }
};
inline std::unique_ptr<AVCodecParameters, FreeParameters> parameters_of(const Clip& clip) {
  std::unique_ptr<AVCodecParameters, FreeParameters> parameters(avcodec_parameters_alloc());
  avcodec_parameters_from_context(parameters.get(), clip.encoder.get());
  return parameters;
}

// The clip's packets as a source would hand them out.
inline std::vector<std::shared_ptr<CodedPicture>> coded(const Clip& clip) {
  auto parameters = parameters_of(clip);
  std::vector<std::shared_ptr<CodedPicture>> all;
  for (const auto& packet : clip.packets) {
    auto each = std::make_shared<CodedPicture>(copy(*packet));
    each->number = static_cast<std::int64_t>(all.size());
    each->key = starts_alone(each->av(), *parameters);
    each->stream_time = Duration(av_rescale_q(packet->pts, clip.encoder->time_base, AV_TIME_BASE_Q));
    each->received = Instant(Duration(1000 + each->number));
    all.push_back(std::move(each));
  }
  return all;
}

// The container follows from the file's name.
inline void write_file(const Clip& clip, const std::string& path) {
  AVFormatContext* raw = nullptr;
  if (avformat_alloc_output_context2(&raw, nullptr, nullptr, path.c_str()) < 0) throw std::bad_alloc();
  AVStream* stream = avformat_new_stream(raw, nullptr);
  avcodec_parameters_from_context(stream->codecpar, clip.encoder.get());
  stream->time_base = clip.encoder->time_base;
  stream->avg_frame_rate = clip.encoder->framerate;
  if (avio_open(&raw->pb, path.c_str(), AVIO_FLAG_WRITE) < 0) throw std::runtime_error("the file cannot be written");
  if (avformat_write_header(raw, nullptr) < 0) throw std::runtime_error("the header cannot be written");
  for (const auto& packet : clip.packets) {
    AvPtr<AVPacket> own = copy(*packet);
    own->duration = 1;
    av_packet_rescale_ts(own.get(), clip.encoder->time_base, stream->time_base);
    av_write_frame(raw, own.get());
  }
  av_write_trailer(raw);
  avio_closep(&raw->pb);
  avformat_free_context(raw);
}

}  // namespace weir::ffmpeg::testing
