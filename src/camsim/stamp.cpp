#include "weir/camsim/stamp.hpp"

#include <algorithm>
#include <cmath>

namespace weir::camsim {

namespace {

constexpr int kBits = kStampColumns * kStampRows, kCheckBits = 8;
constexpr std::uint8_t kBlack = 16, kWhite = 235;

std::uint8_t check_of(std::uint64_t content) {
  std::uint8_t crc = 0xA5;  // not zero, so that a black corner is no stamp
  for (int shift = 32; shift >= 0; shift -= 8) {
    crc ^= static_cast<std::uint8_t>(content >> shift);
    for (int bit = 0; bit < 8; ++bit) crc = static_cast<std::uint8_t>(crc & 0x80 ? (crc << 1) ^ 0x07 : crc << 1);
  }
  return crc;
}

// The mean of the middle half of a cell: its edges suffer most from coding and scaling.
bool is_white(const std::uint8_t* luma, int stride, double scale, int column, int row) {
  double cell = kStampCell * scale;
  auto at = [&](int index, double part) { return static_cast<int>(std::lround((index + part) * cell)); };
  int left = at(column, 0.25), top = at(row, 0.25);
  int right = std::max(left + 1, at(column, 0.75)), bottom = std::max(top + 1, at(row, 0.75));
  int sum = 0;
  for (int y = top; y < bottom; ++y)
    for (int x = left; x < right; ++x) sum += luma[y * stride + x];
  return sum >= 128 * (right - left) * (bottom - top);
}

}  // namespace

void paint(const Stamp& stamp, std::uint8_t* luma, int stride) {
  std::uint64_t content = (static_cast<std::uint64_t>(stamp.number & 0xFFFF) << 20) | (stamp.time_ms & 0xFFFFF);
  std::uint64_t bits = (content << kCheckBits) | check_of(content);
  for (int bit = 0; bit < kBits; ++bit) {
    std::uint8_t shade = (bits >> (kBits - 1 - bit)) & 1 ? kWhite : kBlack;
    std::uint8_t* cell = luma + bit / kStampColumns * kStampCell * stride + bit % kStampColumns * kStampCell;
    for (int y = 0; y < kStampCell; ++y) std::fill_n(cell + y * stride, kStampCell, shade);
  }
}

std::optional<Stamp> read_stamp(const std::uint8_t* luma, int stride, double scale) {
  std::uint64_t bits = 0;
  for (int bit = 0; bit < kBits; ++bit)
    bits = bits << 1 | (is_white(luma, stride, scale, bit % kStampColumns, bit / kStampColumns) ? 1 : 0);
  std::uint64_t content = bits >> kCheckBits;
  if (check_of(content) != (bits & 0xFF)) return std::nullopt;
  return Stamp{static_cast<int>(content >> 20), static_cast<int>(content & 0xFFFFF)};
}

}  // namespace weir::camsim
