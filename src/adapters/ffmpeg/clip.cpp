#include "weir/ffmpeg/clip.hpp"

#include "wire/av.hpp"
#include "wire/av_log.hpp"

#include "weir/base/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

namespace weir::ffmpeg {

namespace {

constexpr int kPicturesMin = 8;

struct Encoder {
  std::string_view codec;
  const char* name;
  const char* options;     // its parameters' name
  const char* parameters;
  AVPixelFormat format;
  double rate;             // of H.264's
};
// As cameras encode: CABAC and deblocking, one reference, no B-frames, one slice a picture.
constexpr std::array<Encoder, 3> kEncoders = {{
    {"h264", "libx264", "x264-params", "bframes=0:ref=1:scenecut=0:rc-lookahead=0:sync-lookahead=0:sliced-threads=0",
     AV_PIX_FMT_YUV420P, 1},
    {"hevc", "libx265", "x265-params", "bframes=0:ref=1:scenecut=0:rc-lookahead=0:log-level=none", AV_PIX_FMT_YUV420P,
     0.5},
    {"mjpeg", "mjpeg", nullptr, nullptr, AV_PIX_FMT_YUVJ420P, 6},
}};

const Encoder* encoder_of(std::string_view codec) {
  auto found = std::ranges::find(kEncoders, codec, &Encoder::codec);
  return found == kEncoders.end() ? nullptr : &*found;
}

Error cannot(std::string what) { return Error{Errc::unavailable, "clip", std::move(what)}; }

// What the camera sees. The same for every run.
class Scene {
 public:
  Scene(int width, int height) : width_(width), height_(height), ground_(static_cast<size_t>(width) * height) {
    std::minstd_rand random(1);
    std::vector<int> coarse(kGrid * kGrid);
    for (int& level : coarse) level = 60 + static_cast<int>(random() % 120);
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        int patch = coarse[static_cast<size_t>(y * kGrid / height * kGrid + x * kGrid / width)];
        ground_[static_cast<size_t>(y) * width + x] =
            static_cast<std::uint8_t>(patch + 12 * std::sin(x * 0.11 + y * 0.05) + 8 * std::sin(y * 0.23));
      }
    noise_.resize(static_cast<size_t>(width) + kNoiseMore);
    for (std::int8_t& level : noise_) level = static_cast<std::int8_t>(static_cast<int>(random() % 5) - 2);
  }

  void draw(AVFrame& frame, int number) const {
    std::minstd_rand random(static_cast<unsigned>(number) + 7);
    for (int y = 0; y < height_; ++y) {
      std::uint8_t* row = frame.data[0] + std::ptrdiff_t{y} * frame.linesize[0];
      const std::uint8_t* from = ground_.data() + std::ptrdiff_t{y} * width_;
      const std::int8_t* noise = noise_.data() + random() % kNoiseMore;
      for (int x = 0; x < width_; ++x) row[x] = static_cast<std::uint8_t>(from[x] + noise[x]);
    }
    for (int plane = 1; plane < 3; ++plane)
      for (int y = 0; y < height_ / 2; ++y)
        std::fill_n(frame.data[plane] + std::ptrdiff_t{y} * frame.linesize[plane], width_ / 2,
                    static_cast<std::uint8_t>(118 + 20 * y / height_ * plane));
    for (int figure = 0; figure < kFigures; ++figure) walk(frame, figure, number);
  }

 private:
  static constexpr int kGrid = 24, kFigures = 6;
  static constexpr size_t kNoiseMore = 4096;

  // An upright figure of a head and a body, with folds in its clothes, that crosses the scene in some seconds.
  void walk(AVFrame& frame, int figure, int number) const {
    int tall = height_ / 4 + height_ * figure / 40, wide = tall / 3;
    int pace = width_ * (figure + 2) / 400;
    int left = (width_ * figure / kFigures + (figure % 2 == 0 ? 1 : -1) * number * pace) % width_;
    if (left < 0) left += width_;
    int top = height_ / 3 + height_ * (figure % 3) / 12;
    for (int y = 0; y < tall && top + y < height_; ++y) {
      int inset = y < tall / 5 ? wide / 3 : 0;
      for (int x = inset; x < wide - inset && left + x < width_; ++x)
        frame.data[0][std::ptrdiff_t{top + y} * frame.linesize[0] + left + x] =
            static_cast<std::uint8_t>(30 + 30 * figure + (x * 7 + y * 3 + number) % 24);
    }
  }

  const int width_, height_;
  std::vector<std::uint8_t> ground_;
  std::vector<std::int8_t> noise_;
};

int kbit_max(const Encoder& kind, const ClipConfig& config) {
  double share = 1.0 * config.width * config.height * config.fps / (1920.0 * 1080 * 25);
  return std::max(64, static_cast<int>(4000 * share * kind.rate));
}

Result<AvPtr<AVCodecContext>> open_encoder(const Encoder& kind, const ClipConfig& config) {
  const AVCodec* codec = avcodec_find_encoder_by_name(kind.name);
  if (codec == nullptr) return cannot(fmt::format("this FFmpeg has no encoder {}", kind.name));
  AvPtr<AVCodecContext> encoder = owned(avcodec_alloc_context3(codec));
  encoder->width = config.width;
  encoder->height = config.height;
  encoder->pix_fmt = kind.format;
  encoder->color_range = kind.format == AV_PIX_FMT_YUVJ420P ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
  encoder->time_base = {1, config.fps};
  encoder->framerate = {config.fps, 1};
  encoder->gop_size = config.fps;
  encoder->max_b_frames = 0;
  encoder->bit_rate = std::int64_t{1000} * kbit_max(kind, config);
  encoder->rc_max_rate = encoder->bit_rate;
  encoder->rc_buffer_size = static_cast<int>(std::min<std::int64_t>(encoder->bit_rate, 1 << 30));
  encoder->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  AvOptions options;
  if (kind.options != nullptr) {
    options.set("preset", "veryfast");
    options.set(kind.options, kind.parameters);
  }
  if (int failed = avcodec_open2(encoder.get(), codec, options.get()); failed < 0)
    return cannot(fmt::format("{} does not start: {}", kind.name, av_words(failed)));
  return encoder;
}

// An open file; it is complete when `finish` has succeeded.
class Writer {
 public:
  ~Writer() {
    if (context_ != nullptr) avio_closep(&context_->pb), avformat_free_context(context_);
  }
  Status open(const std::string& path, const AVCodecContext& encoder) {
    if (avformat_alloc_output_context2(&context_, nullptr, "matroska", nullptr) < 0) throw std::bad_alloc();
    stream_ = avformat_new_stream(context_, nullptr);
    if (stream_ == nullptr || avcodec_parameters_from_context(stream_->codecpar, &encoder) < 0) throw std::bad_alloc();
    stream_->time_base = encoder.time_base;
    stream_->avg_frame_rate = encoder.framerate;
    int failed = avio_open(&context_->pb, path.c_str(), AVIO_FLAG_WRITE);
    if (failed >= 0) failed = avformat_write_header(context_, nullptr);
    return failed < 0 ? Status(cannot(fmt::format("cannot write {}: {}", path, av_words(failed)))) : ok();
  }
  Status take(AVCodecContext& encoder) {
    for (;;) {
      AvPtr<AVPacket> packet = owned(av_packet_alloc());
      if (avcodec_receive_packet(&encoder, packet.get()) < 0) return ok();
      packet->duration = 1;
      bytes_ += packet->size;
      av_packet_rescale_ts(packet.get(), encoder.time_base, stream_->time_base);
      if (int failed = av_write_frame(context_, packet.get()); failed < 0)
        return cannot("cannot write the clip: " + av_words(failed));
    }
  }
  std::int64_t bytes() const { return bytes_; }
  Status finish() {
    int failed = av_write_trailer(context_);
    return failed < 0 ? Status(cannot("cannot write the clip: " + av_words(failed))) : ok();
  }

 private:
  AVFormatContext* context_ = nullptr;
  AVStream* stream_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace

Result<ClipFacts> write_clip(const std::string& path, const ClipConfig& config) {
  take_over_log();
  const Encoder* kind = encoder_of(config.codec);
  if (kind == nullptr) return Error{Errc::invalid, "codec", "the codec must be one of: h264, hevc, mjpeg"};
  TRY(encoder, open_encoder(*kind, config));
  Writer writer;
  TRY(opened, writer.open(path, *encoder));
  Scene scene(config.width, config.height);
  Instant until = boot_now() + config.time_max;
  int pictures = 0;
  while (pictures < config.fps && (pictures < kPicturesMin || boot_now() < until)) {
    AvPtr<AVFrame> frame = owned(av_frame_alloc());
    frame->width = config.width;
    frame->height = config.height;
    frame->format = kind->format;
    frame->color_range = encoder->color_range;
    frame->pts = pictures;
    if (av_frame_get_buffer(frame.get(), 0) < 0) throw std::bad_alloc();
    scene.draw(*frame, pictures++);
    if (int failed = avcodec_send_frame(encoder.get(), frame.get()); failed < 0)
      return cannot("the encoder takes no picture: " + av_words(failed));
    TRY(taken, writer.take(*encoder));
  }
  avcodec_send_frame(encoder.get(), nullptr);
  TRY(rest, writer.take(*encoder));
  TRY(finished, writer.finish());
  return ClipFacts{pictures, static_cast<int>(writer.bytes() * 8 / 1000 * config.fps / pictures)};
}

}  // namespace weir::ffmpeg
