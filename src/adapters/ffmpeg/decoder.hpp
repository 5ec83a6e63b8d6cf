// Decoder: coded pictures in, pictures out, in the order of presentation and each with the identity of its own packet.
//
// Damage is expected and no error by itself. What counts is hunger: the time for which packets go in and no picture
// comes out. Before the first key packet that is normal for as long as a keyframe interval lasts: what refers to
// pictures that were never seen is not shown. A stream that still has none after that refreshes itself piecewise, and
// its pictures are taken as they are. One thread only.
#pragma once

#include "wire/av.hpp"
#include "coded_picture.hpp"

#include <map>
#include <optional>

namespace weir::ffmpeg {

class Decoder {
 public:
  static Result<std::unique_ptr<Decoder>> create(const AVCodecParameters& parameters, int threads);

  Result<std::vector<PicturePtr>> decode(const CodedPicture& packet);
  // Null where the packet gave no picture.
  Result<PicturePtr> decode_alone(const CodedPicture& packet);
  void restart();

  // The size of the last picture; 0 where unknown.
  int width() const { return context_->width; }
  int height() const { return context_->height; }
  double fps() const { return context_->framerate.den > 0 ? av_q2d(context_->framerate) : 0; }
  bool reorders() const { return context_->has_b_frames > 0; }

 private:
  struct Stamp {
    Duration stream_time;
    WallTime captured;
    Instant received;
  };
  struct Hunger {
    std::optional<Duration> since = {};
    int packets = 0;
    // How long the hunger has lasted, this packet included.
    Duration feel(Duration now);
  };

  explicit Decoder(AvPtr<AVCodecContext> context);
  int send(const CodedPicture& packet);
  std::vector<PicturePtr> receive();
  bool forced() const { return (context_->flags & AV_CODEC_FLAG_OUTPUT_CORRUPT) != 0; }
  Status judge(const CodedPicture& packet, int sent, bool fed);

  AvPtr<AVCodecContext> context_;
  AvPtr<AVPacket> input_;
  std::map<std::int64_t, Stamp> stamps_;  // of the packets whose pictures are still to come, by number
  const bool knows_whole_;                // FFmpeg itself shows no picture before one is whole
  bool keyed_ = false;                    // a key packet went in since the start
  Hunger running_, alone_;
};

}  // namespace weir::ffmpeg
