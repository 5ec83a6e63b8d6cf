// Whether a coded picture of VP8, VP9 or AV1 can be decoded by itself, read from its own first bits.
//
// A container marks keyframes; RTP does not, and FFmpeg's readers of RTP leave the mark out for some codecs. H.264 and
// H.265 need more than a look at the first bits: AccessUnit and `starts_alone` read those. Pure; any thread.
#pragma once

extern "C" {
#include <libavcodec/codec_id.h>
}

#include <cstdint>
#include <optional>
#include <span>

namespace weir::ffmpeg {

// Nothing for codecs that this file does not know.
std::optional<bool> key_by_payload(AVCodecID codec, std::span<const std::uint8_t> picture);

}  // namespace weir::ffmpeg
