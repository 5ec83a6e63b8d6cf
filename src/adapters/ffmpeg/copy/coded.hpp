// What passes from the input to the output: FFmpeg's packets and codec parameters behind the port's words.
// Plain values; any thread, one at a time.
#pragma once

#include "../wire/av.hpp"

#include "weir/ports/media_copy.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

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

// What a decoder has to be told first: the parameter sets, in the order of their bytes. A stream's description and its
// pictures put start codes of different lengths before the same sets; which of both was read is a matter of luck.
inline std::vector<std::string_view> sets_of(const AVCodecParameters& parameters) {
  using namespace std::string_view_literals;
  constexpr std::string_view kStart = "\0\0\1"sv;
  std::string_view all(reinterpret_cast<const char*>(parameters.extradata), static_cast<size_t>(parameters.extradata_size));
  if (!all.starts_with("\0\0"sv)) return {all};
  std::vector<std::string_view> out;
  for (size_t at = all.find(kStart); at != std::string_view::npos;) {
    size_t begin = at + kStart.size();
    at = all.find(kStart, begin);
    std::string_view set = all.substr(begin, at == std::string_view::npos ? at : at - begin);
    while (set.ends_with('\0')) set.remove_suffix(1);
    if (!set.empty()) out.push_back(set);
  }
  std::ranges::sort(out);
  return out;
}

struct CodedFormat final : CopyFormat {
  Parameters video, audio;  // null where there is none

  static bool same(const Parameters& a, const Parameters& b) {
    if (a == nullptr || b == nullptr) return a == b;
    return a->codec_id == b->codec_id && a->sample_rate == b->sample_rate && sets_of(*a) == sets_of(*b);
  }
  bool same_as(const CopyFormat& other) const override {
    const auto& format = static_cast<const CodedFormat&>(other);
    return same(video, format.video) && same(audio, format.audio);
  }
};

}  // namespace weir::ffmpeg
