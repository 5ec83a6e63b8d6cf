// Encoder: pictures in, H.264 out, each packet at once and under its picture's own time.
//
// Keyframes come by time, not by number, because published streams change their rate; each holds its parameter sets, so
// that whoever joins there can decode. Encoders of the machine's hardware are tried before libx264. One thread.
#pragma once

#include "../copy/coded.hpp"
#include "../wire/av_log.hpp"

#include <optional>
#include <vector>

namespace weir::ffmpeg {

struct EncoderConfig {
  int width = 0, height = 0;
  int fps = 25;
  Duration keyframe = 2s;
  int bitrate_kbit = 0;  // 0: by size and rate
  bool hardware = true;
};
int usual_kbit(const EncoderConfig& config);

class Encoder {
 public:
  // `like` is one of the pictures to come: its colours and the shape of its pixels are taken over.
  static Result<std::unique_ptr<Encoder>> create(const EncoderConfig& config, const AVFrame& like);

  // `frame` is YUV 4:2:0 in three planes, its pts in microseconds. Key packets are flagged.
  Result<std::vector<AvPtr<AVPacket>>> encode(AVFrame& frame);
  void force_keyframe() { last_key_.reset(); }
  // Null before the first packet.
  const AVCodecParameters* parameters() const { return parameters_.get(); }
  const char* name() const { return context_->codec->name; }
  bool fits(const AVFrame& frame) const { return frame.width == context_->width && frame.height == context_->height; }

 private:
  Encoder(AvPtr<AVCodecContext> context, Duration keyframe) : context_(std::move(context)), keyframe_(keyframe) {}
  void learn(const AVPacket& first);

  AvPtr<AVCodecContext> context_;
  const Duration keyframe_;
  std::optional<std::int64_t> last_key_ = {}, last_pts_ = {};
  Parameters parameters_;
};

}  // namespace weir::ffmpeg
