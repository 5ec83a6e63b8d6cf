#include "encoder.hpp"

#include "weir/forward/failure.hpp"

extern "C" {
#include <libavcodec/bsf.h>
}

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace weir::ffmpeg {

namespace {

struct Kind {
  const char* name;
  bool hardware;
  std::initializer_list<std::pair<const char*, const char*>> options;
};
// In the order in which they are tried. Those that want pictures in memory of their own (VAAPI) are left out.
const Kind kKinds[] = {
    {"h264_nvenc", true, {{"preset", "p2"}, {"tune", "ull"}, {"zerolatency", "1"}, {"delay", "0"}, {"forced-idr", "1"}}},
    {"h264_qsv", true, {{"preset", "veryfast"}, {"async_depth", "1"}, {"forced_idr", "1"}}},
    {"h264_v4l2m2m", true, {}},
    {"libx264", false,
     {{"preset", "veryfast"}, {"tune", "zerolatency"}, {"forced-idr", "1"}, {"x264-params", "force-cfr=1:scenecut=0"}}},
};

Error cannot(std::string what) { return forward::failure(forward::Kind::internal, std::move(what)); }

bool takes(const AVCodec& codec, AVPixelFormat format) {
  for (const AVPixelFormat* each = codec.pix_fmts; each != nullptr && *each != AV_PIX_FMT_NONE; ++each)
    if (*each == format) return true;
  return codec.pix_fmts == nullptr;
}

AvPtr<AVCodecContext> try_open(const Kind& kind, const EncoderConfig& config, const AVFrame& like) {
  const AVCodec* codec = avcodec_find_encoder_by_name(kind.name);
  if (codec == nullptr) return nullptr;
  AvPtr<AVCodecContext> context = owned(avcodec_alloc_context3(codec));
  context->width = config.width;
  context->height = config.height;
  context->pix_fmt = takes(*codec, AV_PIX_FMT_YUV420P) ? AV_PIX_FMT_YUV420P : AV_PIX_FMT_NV12;
  context->color_range = like.color_range;
  context->colorspace = like.colorspace;
  context->color_primaries = like.color_primaries;
  context->color_trc = like.color_trc;
  context->sample_aspect_ratio = like.sample_aspect_ratio;
  context->time_base = AV_TIME_BASE_Q;
  context->framerate = {config.fps, 1};
  context->gop_size = std::max(1, static_cast<int>(10 * config.fps * seconds(config.keyframe)));  // forced before
  context->max_b_frames = 0;
  context->bit_rate = std::int64_t{1000} * (config.bitrate_kbit > 0 ? config.bitrate_kbit : usual_kbit(config));
  context->rc_max_rate = context->bit_rate * 3 / 2;
  context->rc_buffer_size = static_cast<int>(std::min<std::int64_t>(context->bit_rate, 1 << 30));
  // More threads cost a little and make a large picture leave sooner.
  bool large = config.width * config.height > 1280 * 720;
  context->thread_count = large ? std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 4) : 1;
  AvOptions options;
  for (const auto& [name, value] : kind.options) options.set(name, std::string(value));
  return avcodec_open2(context.get(), codec, options.get()) < 0 ? nullptr : std::move(context);
}

// The same picture with its two planes of colour woven into one.
AvPtr<AVFrame> as_nv12(const AVFrame& frame) {
  AvPtr<AVFrame> out = owned(av_frame_alloc());
  out->width = frame.width;
  out->height = frame.height;
  out->format = AV_PIX_FMT_NV12;
  if (av_frame_get_buffer(out.get(), 0) < 0 || av_frame_copy_props(out.get(), &frame) < 0) throw std::bad_alloc();
  out->pict_type = frame.pict_type;
  for (int y = 0; y < frame.height; ++y)
    std::copy_n(frame.data[0] + std::ptrdiff_t{y} * frame.linesize[0], frame.width,
                out->data[0] + std::ptrdiff_t{y} * out->linesize[0]);
  for (int y = 0; y < (frame.height + 1) / 2; ++y) {
    const std::uint8_t* u = frame.data[1] + std::ptrdiff_t{y} * frame.linesize[1];
    const std::uint8_t* v = frame.data[2] + std::ptrdiff_t{y} * frame.linesize[2];
    std::uint8_t* both = out->data[1] + std::ptrdiff_t{y} * out->linesize[1];
    for (int x = 0; x < (frame.width + 1) / 2; ++x) {
      both[2 * x] = u[x];
      both[2 * x + 1] = v[x];
    }
  }
  return out;
}

}  // namespace

int usual_kbit(const EncoderConfig& config) {
  double share = 1.0 * config.width * config.height * config.fps / (1280.0 * 720 * 25);
  return std::clamp(static_cast<int>(2500 * share), 300, 20'000);
}

Result<std::unique_ptr<Encoder>> Encoder::create(const EncoderConfig& config, const AVFrame& like) {
  LogTap tap{Secret{}};
  tap.quiet = true;  // what hardware is not there is no news
  LogTap::Listening listening(tap);
  for (const Kind& kind : kKinds) {
    if (kind.hardware && !config.hardware) continue;
    if (AvPtr<AVCodecContext> context = try_open(kind, config, like))
      return std::unique_ptr<Encoder>(new Encoder(std::move(context), config.keyframe));
  }
  return cannot(fmt::format("no encoder takes pictures of {}x{}", config.width, config.height));
}

// The parameter sets stand in the first packet, whichever encoder made it.
void Encoder::learn(const AVPacket& first) {
  Parameters parameters(avcodec_parameters_alloc());
  if (parameters == nullptr || avcodec_parameters_from_context(parameters.get(), context_.get()) < 0)
    throw std::bad_alloc();
  parameters->format = AV_PIX_FMT_YUV420P;
  AVBSFContext* bsf = nullptr;
  const AVBitStreamFilter* filter = av_bsf_get_by_name("extract_extradata");
  if (filter == nullptr || av_bsf_alloc(filter, &bsf) < 0) return;
  AvPtr<AVPacket> passed = owned(av_packet_clone(&first));
  if (avcodec_parameters_copy(bsf->par_in, parameters.get()) >= 0 && av_bsf_init(bsf) >= 0 &&
      av_bsf_send_packet(bsf, passed.get()) >= 0 && av_bsf_receive_packet(bsf, passed.get()) >= 0) {
    size_t size = 0;
    const std::uint8_t* sets = av_packet_get_side_data(passed.get(), AV_PKT_DATA_NEW_EXTRADATA, &size);
    if (sets != nullptr) {
      av_freep(&parameters->extradata);
      parameters->extradata = static_cast<std::uint8_t*>(av_mallocz(size + AV_INPUT_BUFFER_PADDING_SIZE));
      if (parameters->extradata == nullptr) throw std::bad_alloc();
      std::copy_n(sets, size, parameters->extradata);
      parameters->extradata_size = static_cast<int>(size);
    }
  }
  av_bsf_free(&bsf);
  parameters_ = std::move(parameters);
}

Result<std::vector<AvPtr<AVPacket>>> Encoder::encode(AVFrame& frame) {
  // An encoder takes no two pictures under one time, and none that goes back.
  if (last_pts_) frame.pts = std::max(frame.pts, *last_pts_ + 1);
  last_pts_ = frame.pts;
  bool key = !last_key_ || frame.pts - *last_key_ >= keyframe_.count();
  if (key) last_key_ = frame.pts;
  frame.pict_type = key ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_NONE;
  AvPtr<AVFrame> woven = context_->pix_fmt == AV_PIX_FMT_NV12 ? as_nv12(frame) : nullptr;
  if (int failed = avcodec_send_frame(context_.get(), woven ? woven.get() : &frame); failed < 0)
    return cannot(fmt::format("{} takes no picture: {}", name(), av_words(failed)));
  std::vector<AvPtr<AVPacket>> packets;
  for (;;) {
    AvPtr<AVPacket> packet = owned(av_packet_alloc());
    if (avcodec_receive_packet(context_.get(), packet.get()) < 0) break;
    if (parameters_ == nullptr) learn(*packet);
    packets.push_back(std::move(packet));
  }
  return packets;
}

}  // namespace weir::ffmpeg
