// DecodedPicture: FFmpeg's frame behind the port's Picture. The planes stay where the decoder wrote them; only kinds of
// pixels that have no 8-bit luma plane are converted, once, when the picture is made.
// Immutable once made; any thread. Each thread keeps the scalers it used last.
#pragma once

#include "wire/av.hpp"

#include "weir/ports/video_source.hpp"

namespace weir::ffmpeg {

class DecodedPicture final : public Picture {
 public:
  // Null where the pixels cannot be read.
  static std::shared_ptr<DecodedPicture> create(AvPtr<AVFrame> frame);

  int width() const override { return frame_->width; }
  int height() const override { return frame_->height; }
  const std::uint8_t* luma() const override { return frame_->data[0]; }
  int luma_stride() const override { return frame_->linesize[0]; }
  bool to_rgb(Region from, int out_width, int out_height, std::span<std::uint8_t> out) const override;
  std::string to_jpeg(int width_max, int quality) const override;

 private:
  explicit DecodedPicture(AvPtr<AVFrame> frame) : frame_(std::move(frame)) {}
  AvPtr<AVFrame> frame_;
};

}  // namespace weir::ffmpeg
