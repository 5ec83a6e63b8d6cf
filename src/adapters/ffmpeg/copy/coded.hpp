// What passes from the input to the output: FFmpeg's packets and codec parameters behind the port's words.
// Plain values; any thread, one at a time.
#pragma once

#include "../wire/av.hpp"

#include "weir/ports/media_copy.hpp"

#include <cstring>

namespace weir::ffmpeg {

struct CodedPacket final : CopyPacket {
  AvPtr<AVPacket> packet;
};

struct ParametersFree {
  void operator()(AVCodecParameters* parameters) const { avcodec_parameters_free(&parameters); }
};
using Parameters = std::unique_ptr<AVCodecParameters, ParametersFree>;

inline Parameters copy_of(const AVCodecParameters& from) {
  Parameters copy(avcodec_parameters_alloc());
  if (copy == nullptr || avcodec_parameters_copy(copy.get(), &from) < 0) throw std::bad_alloc();
  return copy;
}

struct CodedFormat final : CopyFormat {
  Parameters video, audio;  // null where there is none

  static bool same(const Parameters& a, const Parameters& b) {
    if (a == nullptr || b == nullptr) return a == b;
    return a->codec_id == b->codec_id && a->sample_rate == b->sample_rate && a->extradata_size == b->extradata_size &&
           (a->extradata_size == 0 ||
            std::memcmp(a->extradata, b->extradata, static_cast<size_t>(a->extradata_size)) == 0);
  }
  bool same_as(const CopyFormat& other) const override {
    const auto& format = static_cast<const CodedFormat&>(other);
    return same(video, format.video) && same(audio, format.audio);
  }
};

}  // namespace weir::ffmpeg
