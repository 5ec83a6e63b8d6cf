#include "access_unit.hpp"

namespace weir::camsim {

namespace {

enum class Nal { sets, alone, other };

Nal kind_of(Codec codec, unsigned char header) {
  int type = codec == Codec::h264 ? header & 0x1F : header >> 1 & 0x3F;
  if (codec == Codec::h264) return type == 7 || type == 8 ? Nal::sets : type == 5 ? Nal::alone : Nal::other;
  return type >= 32 && type <= 34 ? Nal::sets : type >= 16 && type <= 21 ? Nal::alone : Nal::other;
}

// Calls visit(kind, offset of the start code) for each NAL unit of an Annex B byte stream until it returns false.
template <class Visit>
void each_nal(Codec codec, std::string_view unit, Visit visit) {
  constexpr std::string_view kStart("\0\0\1", 3);
  for (size_t at = unit.find(kStart); at != std::string_view::npos && at + 3 < unit.size();
       at = unit.find(kStart, at + 3)) {
    size_t begin = at > 0 && unit[at - 1] == '\0' ? at - 1 : at;
    if (!visit(kind_of(codec, static_cast<unsigned char>(unit[at + 3])), begin)) return;
  }
}

}  // namespace

bool decodable_alone(Codec codec, std::string_view unit) {
  if (codec == Codec::mjpeg) return true;
  bool found = false;
  each_nal(codec, unit, [&](Nal kind, size_t) { return !(found = kind == Nal::alone); });
  return found;
}

size_t parameter_sets_bytes(Codec codec, std::string_view unit) {
  if (codec == Codec::mjpeg) return 0;
  size_t end = unit.size();
  each_nal(codec, unit, [&](Nal kind, size_t begin) {
    if (kind != Nal::sets) end = begin;
    return kind == Nal::sets;
  });
  return end;
}

}  // namespace weir::camsim
