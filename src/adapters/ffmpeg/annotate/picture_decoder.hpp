// PictureDecoder: coded pictures in, frames out in the order of presentation, each under its own time.
//
// Damage costs pictures and is no error. What refers to pictures that were never seen is not shown. One thread.
#pragma once

#include "../copy/coded.hpp"

#include <optional>
#include <vector>

namespace weir::ffmpeg {

class PictureDecoder {
 public:
  // Null where FFmpeg has no decoder for it.
  static std::unique_ptr<PictureDecoder> create(const AVCodecParameters& parameters);

  // `pts` in the input's own time; a picture without one follows the last after `step`. The frames' pts are in
  // microseconds.
  std::vector<AvPtr<AVFrame>> decode(const AVPacket& packet, std::optional<Duration> pts, Duration step);
  // Forgets everything; the next packet can be decoded by itself.
  void restart() { avcodec_flush_buffers(context_.get()); }

 private:
  explicit PictureDecoder(AvPtr<AVCodecContext> context) : context_(std::move(context)) {}

  AvPtr<AVCodecContext> context_;
  std::int64_t last_pts_ = 0;
};

// A frame of one's own, of YUV 4:2:0 in three planes, with the same picture. Null where it cannot be converted.
AvPtr<AVFrame> writable_420(const AVFrame& frame);

// An H.264 key packet that holds its parameter sets; they are put before it where it lacks them.
AvPtr<AVPacket> with_parameter_sets(AvPtr<AVPacket> key, const AVCodecParameters& video);

}  // namespace weir::ffmpeg
