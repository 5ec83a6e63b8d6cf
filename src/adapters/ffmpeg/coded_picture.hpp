// CodedPicture: FFmpeg's packet behind the port's Packet, and whether a decoder can start with it.
// Immutable once made; any thread.
#pragma once

#include "wire/av.hpp"

#include "weir/ports/video_source.hpp"

namespace weir::ffmpeg {

class CodedPicture final : public Packet {
 public:
  explicit CodedPicture(AvPtr<AVPacket> packet) : packet_(std::move(packet)) {}
  size_t bytes() const override { return static_cast<size_t>(packet_->size); }
  const AVPacket& av() const { return *packet_; }

 private:
  AvPtr<AVPacket> packet_;
};

// Whether the picture can be decoded with nothing before it. FFmpeg's own flag also marks the starting points of
// intra-refresh, where a whole picture appears only many packets later.
bool starts_alone(const AVPacket& packet, const AVCodecParameters& parameters);

}  // namespace weir::ffmpeg
