// MotionGate: whether enough moves in a camera's picture to be worth a look.
//
// A picture is averaged down (1/`downscale`, rounded to a whole number of pixels) and compared with a background that
// follows it one grey level every few looks, and takes in what has stood still for 24 of them: noise of sensor and
// codec stays below the threshold, a slow change of light is followed, and things that come, go or walk stand out
// against it, whether pictures come at 25 a second or only as keyframes. Light that changes everywhere at once is
// taken out first. Changed pixels that lie together form a patch; a patch of at least `min_area_px` pixels of the
// whole picture is motion. It is measured in cells of 8 by 8 pixels, so that a small one may count up to 0.4 times
// too large, rather than too small.
//
// What cannot be compared counts as motion once: the first picture, one of another size, a picture that changed nearly
// everywhere. The gate stays open for `cooldown_frames` looks after the last motion; a disabled gate is always open.
// Plain value; belongs to its camera's thread.
#pragma once

#include "weir/camera/config.hpp"

#include <cstdint>
#include <vector>

namespace weir::motion {

struct Verdict {
  bool moved = false;
  bool open = false;
  std::int64_t changed_area_px = 0;  // of the largest patch, in pixels of the whole picture
};

class MotionGate {
 public:
  explicit MotionGate(const camera::MotionGating& settings) : settings_(settings) {}
  // One 8-bit luma plane; `stride` bytes from row to row.
  Verdict look(const std::uint8_t* luma, std::ptrdiff_t stride, int width, int height);
  // Other settings from the next look on; what was learned stays, unless the scale changed.
  void configure(const camera::MotionGating& settings);

 private:
  void start_over(int width, int height);
  void shrink(const std::uint8_t* luma, std::ptrdiff_t stride);
  int light_change() const;
  void follow_light(int levels);
  void compare(bool learn);
  bool settled(int cx, int cy, bool still);
  void take_in(int cx, int cy);
  std::int64_t largest_patch_px();
  std::int64_t changed_area(bool first);

  camera::MotionGating settings_;
  int width_ = 0, height_ = 0;                // of the picture
  int step_ = 1, columns_ = 0, rows_ = 0;     // pixels averaged into one, and the averaged picture
  int cell_ = 1, cells_x_ = 0, cells_y_ = 0;  // averaged pixels along a cell's side, and how many cells
  std::vector<std::uint8_t> now_, before_, background_;
  std::vector<std::uint8_t> row_counts_;    // changed pixels by column, of one row of cells
  std::vector<std::int16_t> row_sums_;      // differences by column, of one row of cells
  std::vector<std::uint16_t> row_moves_;    // differences from the last look by column, of one row of cells
  std::vector<std::uint8_t> still_looks_;   // by cell: for how many looks it has not changed
  std::vector<std::uint16_t> cell_counts_;  // changed pixels by cell; too few of them count as none
  std::vector<std::uint16_t> column_sums_;
  std::vector<std::int32_t> pending_;  // cells of the patch being measured
  std::int64_t looks_ = 0, looks_since_motion_ = 0;
};

}  // namespace weir::motion
