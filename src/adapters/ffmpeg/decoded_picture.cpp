#include "decoded_picture.hpp"

extern "C" {
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
}

#include <list>

namespace weir::ffmpeg {

namespace {
struct Pixels {
  int width = 0, height = 0;
  AVPixelFormat format = AV_PIX_FMT_NONE;
  int full_range = 0;
  int matrix = SWS_CS_DEFAULT;
  friend bool operator==(const Pixels&, const Pixels&) = default;
};

// The "J" formats are the plain ones with full range, and swscale complains about each use of them.
Pixels pixels_of(const AVFrame& frame) {
  Pixels pixels{frame.width, frame.height, static_cast<AVPixelFormat>(frame.format)};
  pixels.full_range = frame.color_range == AVCOL_RANGE_JPEG;
  switch (pixels.format) {
    case AV_PIX_FMT_YUVJ420P: pixels.format = AV_PIX_FMT_YUV420P, pixels.full_range = 1; break;
    case AV_PIX_FMT_YUVJ422P: pixels.format = AV_PIX_FMT_YUV422P, pixels.full_range = 1; break;
    case AV_PIX_FMT_YUVJ444P: pixels.format = AV_PIX_FMT_YUV444P, pixels.full_range = 1; break;
    case AV_PIX_FMT_YUVJ440P: pixels.format = AV_PIX_FMT_YUV440P, pixels.full_range = 1; break;
    case AV_PIX_FMT_GRAY8: pixels.full_range = 1; break;
    default: break;
  }
  switch (frame.colorspace) {
    case AVCOL_SPC_BT709: pixels.matrix = SWS_CS_ITU709; break;
    case AVCOL_SPC_BT2020_NCL: pixels.matrix = SWS_CS_BT2020; break;
    case AVCOL_SPC_BT470BG:
    case AVCOL_SPC_SMPTE170M: pixels.matrix = SWS_CS_ITU601; break;
    default: pixels.matrix = frame.height >= 720 ? SWS_CS_ITU709 : SWS_CS_ITU601;  // the custom where nothing is said
  }
  return pixels;
}

bool has_luma_plane(AVPixelFormat format) {
  switch (format) {
    case AV_PIX_FMT_YUV420P:
    case AV_PIX_FMT_YUV422P:
    case AV_PIX_FMT_YUV444P:
    case AV_PIX_FMT_YUV440P:
    case AV_PIX_FMT_NV12:
    case AV_PIX_FMT_NV21:
    case AV_PIX_FMT_GRAY8: return true;
    default: return false;
  }
}

// Making a scaler costs more than using it, so each thread keeps the last few: one for each kind of camera it serves.
class Scalers {
 public:
  static Scalers& of_this_thread() {
    thread_local Scalers scalers;
    return scalers;
  }
  SwsContext* get(const Pixels& from, const Pixels& to) {
    for (auto each = all_.begin(); each != all_.end(); ++each) {
      if (each->from != from || each->to != to) continue;
      all_.splice(all_.begin(), all_, each);
      return all_.front().context.get();
    }
    std::unique_ptr<SwsContext, Free> made(sws_getContext(from.width, from.height, from.format, to.width, to.height,
                                                          to.format, SWS_BILINEAR, nullptr, nullptr, nullptr));
    if (!made) return nullptr;
    sws_setColorspaceDetails(made.get(), sws_getCoefficients(from.matrix), from.full_range,
                             sws_getCoefficients(to.matrix), to.full_range, 0, 1 << 16, 1 << 16);
    if (all_.size() == kMax) all_.pop_back();
    all_.push_front({from, to, std::move(made)});
    return all_.front().context.get();
  }

 private:
  static constexpr size_t kMax = 8;
  struct Free {
    void operator()(SwsContext* context) const { sws_freeContext(context); }
  };
  struct Scaler {
    Pixels from, to;
    std::unique_ptr<SwsContext, Free> context;
  };
  std::list<Scaler> all_;
};

// A new frame with the picture in other pixels.
AvPtr<AVFrame> converted(const AVFrame& frame, const Pixels& to) {
  AvPtr<AVFrame> out = owned(av_frame_alloc());
  out->width = to.width;
  out->height = to.height;
  out->format = to.format;
  out->color_range = to.full_range != 0 ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
  out->colorspace = frame.colorspace;
  if (av_frame_get_buffer(out.get(), 0) < 0) return nullptr;
  SwsContext* scaler = Scalers::of_this_thread().get(pixels_of(frame), to);
  if (scaler == nullptr) return nullptr;
  int rows = sws_scale(scaler, frame.data, frame.linesize, 0, frame.height, out->data, out->linesize);
  return rows > 0 ? std::move(out) : nullptr;
}
}  // namespace

std::shared_ptr<DecodedPicture> DecodedPicture::create(AvPtr<AVFrame> frame) {
  if (frame->width <= 0 || frame->height <= 0 || frame->data[0] == nullptr) return nullptr;
  Pixels pixels = pixels_of(*frame);
  // A negative stride is a picture stored bottom up; readers of the luma plane need not know of that.
  if (!has_luma_plane(pixels.format) || frame->linesize[0] <= 0) {
    pixels.format = AV_PIX_FMT_YUV420P;
    frame = converted(*frame, pixels);
    if (!frame) return nullptr;
  }
  return std::shared_ptr<DecodedPicture>(new DecodedPicture(std::move(frame)));
}

bool DecodedPicture::to_rgb(Region from, int out_width, int out_height, std::span<std::uint8_t> out) const {
  if (out_width <= 0 || out_height <= 0 || from.width <= 0 || from.height <= 0) return false;
  if (out.size() < static_cast<size_t>(out_width) * static_cast<size_t>(out_height) * 3) return false;
  if (from.x < 0 || from.y < 0 || from.x > width() - from.width || from.y > height() - from.height) return false;
  Pixels source = pixels_of(*frame_);
  const AVPixFmtDescriptor& format = *av_pix_fmt_desc_get(source.format);
  // A chroma sample belongs to several pixels: the region starts where one does.
  int x = from.x & ~((1 << format.log2_chroma_w) - 1), y = from.y & ~((1 << format.log2_chroma_h) - 1);
  source.width = from.width + from.x - x;
  source.height = from.height + from.y - y;
  const std::uint8_t* planes[4] = {};
  for (int i = 0; i < format.nb_components; ++i) {
    const AVComponentDescriptor& component = format.comp[i];
    int across = i == 0 ? x : x >> format.log2_chroma_w, down = i == 0 ? y : y >> format.log2_chroma_h;
    const std::uint8_t*& plane = planes[component.plane];
    if (plane == nullptr)
      plane = frame_->data[component.plane] + std::ptrdiff_t{down} * frame_->linesize[component.plane] +
              std::ptrdiff_t{across} * component.step;
  }
  Pixels target{out_width, out_height, AV_PIX_FMT_RGB24, 1, source.matrix};
  SwsContext* scaler = Scalers::of_this_thread().get(source, target);
  if (scaler == nullptr) return false;
  std::uint8_t* rows[4] = {out.data()};
  int strides[4] = {out_width * 3};
  return sws_scale(scaler, planes, frame_->linesize, 0, source.height, rows, strides) == out_height;
}

std::string DecodedPicture::to_jpeg(int width_max, int quality) const {
  Pixels target = pixels_of(*frame_);
  if (width_max > 0 && target.width > width_max) {
    target.height = std::max(2, static_cast<int>(std::int64_t{target.height} * width_max / target.width) & ~1);
    target.width = std::max(2, width_max & ~1);
  }
  target.format = AV_PIX_FMT_YUV420P;
  target.full_range = 1;
  target.matrix = SWS_CS_ITU601;  // JPEG knows no other
  AvPtr<AVFrame> frame = converted(*frame_, target);
  const AVCodec* codec = avcodec_find_encoder(AV_CODEC_ID_MJPEG);
  if (!frame || codec == nullptr) return {};
  AvPtr<AVCodecContext> encoder = owned(avcodec_alloc_context3(codec));
  frame->format = encoder->pix_fmt = AV_PIX_FMT_YUVJ420P;
  encoder->width = target.width;
  encoder->height = target.height;
  encoder->time_base = {1, 25};
  encoder->color_range = AVCOL_RANGE_JPEG;
  encoder->flags |= AV_CODEC_FLAG_QSCALE;
  // The encoder's scale runs from 2, the finest, to 31.
  int scale = 2 + (100 - std::clamp(quality, 1, 100)) * 29 / 99;
  encoder->global_quality = frame->quality = scale * FF_QP2LAMBDA;
  if (avcodec_open2(encoder.get(), codec, nullptr) < 0) return {};
  AvPtr<AVPacket> packet = owned(av_packet_alloc());
  if (avcodec_send_frame(encoder.get(), frame.get()) < 0 || avcodec_receive_packet(encoder.get(), packet.get()) < 0)
    return {};
  return std::string(reinterpret_cast<const char*>(packet->data), static_cast<size_t>(packet->size));
}

}  // namespace weir::ffmpeg
