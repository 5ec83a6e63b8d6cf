// Stamp: a frame's number and time, painted into its pixels, so that latency, gaps and duplicates can be measured in
// the decoded picture.
//
// Layout: 44 cells of 8x8 pixels in the top-left corner, in two rows of 22 (176x16 pixels); white (luma 235) is 1,
// black (16) is 0. Read left to right, first row first, most significant bit first:
//
//   bits  0–15  the frame's number in the loop, from 0
//   bits 16–35  its time in the loop in milliseconds: floor(number * 1000 / fps)
//   bits 36–43  CRC-8 (polynomial 0x07, start 0xA5) of the 36 bits before, taken as five bytes: the 36-bit number,
//               most significant byte first
//
// The mean of a cell's middle decides: 128 and above is white. A picture scaled to half its size has cells of 4x4
// pixels and still reads. Plain functions; any thread.
#pragma once

#include <cstdint>
#include <optional>

namespace weir::camsim {

inline constexpr int kStampCell = 8, kStampColumns = 22, kStampRows = 2;

struct Stamp {
  int number = 0;   // below 65536
  int time_ms = 0;  // below 1048576
  friend bool operator==(const Stamp&, const Stamp&) = default;
};

void paint(const Stamp& stamp, std::uint8_t* luma, int stride);
// `scale` is the picture's width divided by that of the stream: 0.5 for half size. Nothing where no valid stamp is.
std::optional<Stamp> read_stamp(const std::uint8_t* luma, int stride, double scale = 1.0);

}  // namespace weir::camsim
