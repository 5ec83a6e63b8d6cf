// SoundEncoder: coded sound in, AAC out, for destinations that carry nothing else.
//
// Damage costs sound and is no error. What leaves keeps the times of the input; where these jump, the sound between is
// missing. Mono stays mono; everything else becomes stereo. One thread.
#pragma once

#include "../copy/coded.hpp"

extern "C" {
#include <libavutil/audio_fifo.h>
#include <libswresample/swresample.h>
}

#include <optional>
#include <vector>

namespace weir::ffmpeg {

class SoundEncoder {
 public:
  static Result<std::unique_ptr<SoundEncoder>> create(const AVCodecParameters& from);

  // `pts` in the input's own time; that of the packets that leave is in microseconds.
  Result<std::vector<AvPtr<AVPacket>>> convert(const AVPacket& packet, std::optional<Duration> pts);
  const AVCodecParameters& parameters() const { return *parameters_; }
  // Between two packets that leave.
  Duration step() const { return Duration(std::int64_t{1'000'000} * encoder_->frame_size / encoder_->sample_rate); }

 private:
  struct ResamplerFree {
    void operator()(SwrContext* context) const { swr_free(&context); }
  };
  struct FifoFree {
    void operator()(AVAudioFifo* fifo) const { av_audio_fifo_free(fifo); }
  };
  SoundEncoder(AvPtr<AVCodecContext> decoder, AvPtr<AVCodecContext> encoder);
  void place(Duration pts);
  Status take(const AVFrame& decoded);
  bool follow(const AVFrame& decoded);
  AvPtr<AVFrame> blank(int samples) const;
  Status encode(std::vector<AvPtr<AVPacket>>& packets);

  const AvPtr<AVCodecContext> decoder_, encoder_;
  Parameters parameters_;
  std::unique_ptr<SwrContext, ResamplerFree> resampler_;
  AvPtr<AVFrame> like_;                      // what the resampler was made for
  std::unique_ptr<AVAudioFifo, FifoFree> waiting_;  // samples that fill no packet yet
  std::optional<std::int64_t> begins_;       // the place of the first of them, in samples
};

}  // namespace weir::ffmpeg
