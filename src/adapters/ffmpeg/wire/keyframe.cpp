#include "keyframe.hpp"

namespace weir::ffmpeg {

namespace {
using Bytes = std::span<const std::uint8_t>;

// The lowest bit of the frame tag is 0 in a keyframe, and three fixed bytes follow the tag there.
bool vp8_key(Bytes picture) {
  return picture.size() >= 6 && (picture[0] & 1) == 0 && picture[3] == 0x9D && picture[4] == 0x01 && picture[5] == 0x2A;
}

// The uncompressed header: marker (2 bits, the value 2), profile (2 bits; a third, reserved one in profile 3),
// show_existing_frame, frame_type (0 is a keyframe).
bool vp9_key(Bytes picture) {
  if (picture.empty() || picture[0] >> 6 != 2) return false;
  int at = (picture[0] & 0x30) == 0x30 ? 5 : 4;
  auto bit = [&](int n) { return (picture[0] >> (7 - n) & 1) != 0; };
  bool shows_existing = bit(at), inter = bit(at + 1);
  return !shows_existing && !inter;
}

// A number of seven bits a byte, the lowest first; `at` moves behind it. Nothing where it does not end.
std::optional<size_t> leb128(Bytes bytes, size_t& at) {
  size_t value = 0;
  for (int i = 0; i < 8 && at < bytes.size(); ++i) {
    std::uint8_t byte = bytes[at++];
    value |= static_cast<size_t>(byte & 0x7F) << (7 * i);
    if ((byte & 0x80) == 0) return value;
  }
  return std::nullopt;
}

// A temporal unit that begins a coded video sequence holds its sequence header.
bool av1_key(Bytes unit) {
  constexpr int kSequenceHeader = 1;
  for (size_t at = 0; at < unit.size();) {
    std::uint8_t header = unit[at++];
    if ((header & 0x80) != 0) return false;
    if ((header >> 3 & 0xF) == kSequenceHeader) return true;
    if ((header & 0x04) != 0) ++at;
    if ((header & 0x02) == 0) return false;  // without a size it is the last one
    auto size = leb128(unit, at);
    if (!size || *size > unit.size() - at) return false;
    at += *size;
  }
  return false;
}
}  // namespace

std::optional<bool> key_by_payload(AVCodecID codec, Bytes picture) {
  switch (codec) {
    case AV_CODEC_ID_VP8: return vp8_key(picture);
    case AV_CODEC_ID_VP9: return vp9_key(picture);
    case AV_CODEC_ID_AV1: return av1_key(picture);
    default: return std::nullopt;
  }
}

}  // namespace weir::ffmpeg
