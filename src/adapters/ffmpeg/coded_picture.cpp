#include "coded_picture.hpp"

#include "wire/keyframe.hpp"

#include <span>
#include <vector>

namespace weir::ffmpeg {

namespace {
using Bytes = std::span<const std::uint8_t>;

// The next NAL unit; `rest` moves on. Both forms are in use: start codes, or `length_bytes` before each unit.
Bytes next_nal(Bytes& rest, int length_bytes) {
  if (length_bytes > 0) {
    size_t length = 0;
    if (rest.size() < static_cast<size_t>(length_bytes)) return rest = {};
    for (int i = 0; i < length_bytes; ++i) length = length << 8 | rest[static_cast<size_t>(i)];
    rest = rest.subspan(static_cast<size_t>(length_bytes));
    Bytes nal = rest.first(std::min(length, rest.size()));
    rest = rest.subspan(nal.size());
    return nal;
  }
  // Where the unit ends is not searched for: its first bytes decide, and most packets are decided by their first unit.
  for (size_t i = 0; i + 3 < rest.size(); ++i)
    if (rest[i] == 0 && rest[i + 1] == 0 && rest[i + 2] == 1) return rest = rest.subspan(i + 3);
  return rest = {};
}

// The first bits of an unsigned Exp-Golomb number are enough: zero is written as a single 1.
bool golomb_zero(std::uint8_t first) { return (first & 0x80) != 0; }

// A unit up to its own end, which `next_nal` did not search for, without the 03 that keeps 00 00 0x out of it.
std::vector<std::uint8_t> content_of(Bytes nal) {
  std::vector<std::uint8_t> content;
  int zeros = 0;
  for (std::uint8_t byte : nal) {
    if (zeros >= 2 && byte <= 1) break;  // the next start code, or the zeros before it
    bool inserted = zeros >= 2 && byte == 3;
    zeros = byte == 0 ? zeros + 1 : 0;
    if (!inserted) content.push_back(byte);
  }
  return content;
}

// An SEI NAL unit whose recovery point lies in this very picture.
bool recovers_at_once(Bytes nal) {
  const std::vector<std::uint8_t> sei = content_of(nal);
  size_t at = 1;
  while (at + 2 < sei.size()) {
    auto number = [&] {
      size_t sum = 0;
      while (at < sei.size() && sei[at] == 0xFF) sum += sei[at++];
      return at < sei.size() ? sum + sei[at++] : sum;
    };
    size_t type = number(), size = number();
    if (type == 6) return at < sei.size() && golomb_zero(sei[at]);
    at += size;
  }
  return false;
}

int length_bytes_of(const AVCodecParameters& parameters) {
  bool hevc = parameters.codec_id == AV_CODEC_ID_HEVC;
  int at = hevc ? 21 : 4;
  if (parameters.extradata_size <= at || parameters.extradata[0] != 1) return 0;
  return (parameters.extradata[at] & 3) + 1;
}
}  // namespace

bool starts_alone(const AVPacket& packet, const AVCodecParameters& parameters) {
  bool flagged = (packet.flags & AV_PKT_FLAG_KEY) != 0;
  Bytes rest(packet.data, static_cast<size_t>(packet.size));
  if (parameters.codec_id != AV_CODEC_ID_H264 && parameters.codec_id != AV_CODEC_ID_HEVC)
    return key_by_payload(parameters.codec_id, rest).value_or(flagged);
  int length_bytes = length_bytes_of(parameters);
  bool recovery_point = false;
  while (!rest.empty()) {
    Bytes nal = next_nal(rest, length_bytes);
    if (nal.empty()) continue;
    if (parameters.codec_id == AV_CODEC_ID_HEVC) {
      int type = nal[0] >> 1 & 0x3F;
      if (type >= 16 && type <= 21) return true;  // BLA, IDR, CRA
      if (type < 16) return false;
    } else {
      int type = nal[0] & 0x1F;
      if (type == 5) return true;
      if (type == 1) return recovery_point;
      if (type == 6 && recovers_at_once(nal)) recovery_point = true;
    }
  }
  return false;
}

}  // namespace weir::ffmpeg
