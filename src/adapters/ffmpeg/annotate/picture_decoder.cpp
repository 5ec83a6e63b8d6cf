#include "picture_decoder.hpp"

extern "C" {
#include <libswscale/swscale.h>
}

#include <algorithm>
#include <cstring>
#include <string_view>

namespace weir::ffmpeg {

namespace {
constexpr std::int64_t kPixelsMax = 8192 * 4352;

struct ScalerFree {
  void operator()(SwsContext* context) const { sws_freeContext(context); }
};

// The 8-bit 4:2:0 formats differ in their range only, which the frame says, too.
bool is_420(const AVFrame& frame) {
  return frame.format == AV_PIX_FMT_YUV420P || frame.format == AV_PIX_FMT_YUVJ420P;
}

AvPtr<AVFrame> blank_like(const AVFrame& frame) {
  AvPtr<AVFrame> out = owned(av_frame_alloc());
  out->width = frame.width;
  out->height = frame.height;
  out->format = AV_PIX_FMT_YUV420P;
  if (av_frame_get_buffer(out.get(), 0) < 0 || av_frame_copy_props(out.get(), &frame) < 0) throw std::bad_alloc();
  if (frame.format == AV_PIX_FMT_YUVJ420P) out->color_range = AVCOL_RANGE_JPEG;
  return out;
}

void copy_planes(const AVFrame& from, AVFrame& to) {
  for (int plane = 0; plane < 3; ++plane) {
    int width = plane == 0 ? from.width : (from.width + 1) / 2;
    int height = plane == 0 ? from.height : (from.height + 1) / 2;
    for (int y = 0; y < height; ++y)
      std::copy_n(from.data[plane] + std::ptrdiff_t{y} * from.linesize[plane], width,
                  to.data[plane] + std::ptrdiff_t{y} * to.linesize[plane]);
  }
}
}  // namespace

std::unique_ptr<PictureDecoder> PictureDecoder::create(const AVCodecParameters& parameters) {
  const AVCodec* codec = avcodec_find_decoder(parameters.codec_id);
  if (codec == nullptr) return nullptr;
  AvPtr<AVCodecContext> context = owned(avcodec_alloc_context3(codec));
  if (avcodec_parameters_to_context(context.get(), &parameters) < 0) return nullptr;
  context->pkt_timebase = AV_TIME_BASE_Q;
  // Frame threading would hold back one picture for each thread.
  context->thread_type = FF_THREAD_SLICE;
  context->thread_count = 1;
  context->max_pixels = kPixelsMax;
  if (avcodec_open2(context.get(), codec, nullptr) < 0) return nullptr;
  return std::unique_ptr<PictureDecoder>(new PictureDecoder(std::move(context)));
}

std::vector<AvPtr<AVFrame>> PictureDecoder::decode(const AVPacket& packet, std::optional<Duration> pts, Duration step) {
  AvPtr<AVPacket> fed = owned(av_packet_clone(&packet));
  fed->pts = pts ? pts->count() : AV_NOPTS_VALUE;
  fed->dts = AV_NOPTS_VALUE;
  avcodec_send_packet(context_.get(), fed.get());
  std::vector<AvPtr<AVFrame>> frames;
  for (;;) {
    AvPtr<AVFrame> frame = owned(av_frame_alloc());
    if (avcodec_receive_frame(context_.get(), frame.get()) < 0) return frames;
    if (frame->pts == AV_NOPTS_VALUE) frame->pts = last_pts_ + step.count();
    last_pts_ = frame->pts;
    frames.push_back(std::move(frame));
  }
}

AvPtr<AVFrame> writable_420(const AVFrame& frame) {
  if (frame.width <= 0 || frame.height <= 0 || frame.data[0] == nullptr) return nullptr;
  AvPtr<AVFrame> out = blank_like(frame);
  if (is_420(frame)) {
    copy_planes(frame, *out);
    return out;
  }
  std::unique_ptr<SwsContext, ScalerFree> scaler(
      sws_getContext(frame.width, frame.height, static_cast<AVPixelFormat>(frame.format), frame.width, frame.height,
                     AV_PIX_FMT_YUV420P, SWS_BILINEAR, nullptr, nullptr, nullptr));
  if (scaler == nullptr) return nullptr;
  int rows = sws_scale(scaler.get(), frame.data, frame.linesize, 0, frame.height, out->data, out->linesize);
  return rows > 0 ? std::move(out) : nullptr;
}

AvPtr<AVPacket> with_parameter_sets(AvPtr<AVPacket> key, const AVCodecParameters& video) {
  constexpr int kSequenceParameters = 7;
  constexpr std::string_view kStart{"\0\0\1", 3};
  std::string_view bytes(reinterpret_cast<const char*>(key->data), static_cast<size_t>(key->size));
  for (size_t at = bytes.find(kStart); at != std::string_view::npos && at + 3 < bytes.size();
       at = bytes.find(kStart, at + 3)) {
    int type = bytes[at + 3] & 0x1F;
    if (type == kSequenceParameters) return key;
    if (type >= 1 && type <= 5) break;  // the picture itself: nothing that comes before it is left
  }
  bool start_codes = video.extradata_size > 4 && video.extradata[0] == 0;
  if (!start_codes) return key;
  AvPtr<AVPacket> joined = owned(av_packet_alloc());
  if (av_new_packet(joined.get(), video.extradata_size + key->size) < 0) throw std::bad_alloc();
  std::memcpy(joined->data, video.extradata, static_cast<size_t>(video.extradata_size));
  std::memcpy(joined->data + video.extradata_size, key->data, static_cast<size_t>(key->size));
  av_packet_copy_props(joined.get(), key.get());
  return joined;
}

}  // namespace weir::ffmpeg
