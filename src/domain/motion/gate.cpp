#include "weir/motion/gate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace weir::motion {

namespace {

constexpr int kThreshold = 18;  // grey levels that make a pixel a changed one
// Grey levels by which a cell's mean must change as well: detail that a starved codec drops and restores at keyframes
// cancels out in the mean, a body does not.
constexpr int kCellThreshold = 13;
constexpr int kLooksALevel = 2;  // the background moves by one level in this many looks
constexpr int kStillMean = 4;    // grey levels a pixel: a cell that differs no more from the last look stands still
constexpr int kStillLooks = 24;  // after so many looks it belongs to the background; a slow walker has moved on by then
constexpr int kLightJump = 12;   // a change of light by so many levels is an event, less is followed silently
constexpr int kBlock = 4, kBlocksApart = 16;  // pixels of the averaged picture: samples of the light
constexpr double kEverywhere = 0.6;           // share of cells beyond which there is no background left to compare with

// dst[i] is the mean of a square of two by two.
void average_pairs(const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* __restrict dst, int count) {
  for (int i = 0; i < count; ++i)
    dst[i] = static_cast<std::uint8_t>((a[2 * i] + a[2 * i + 1] + b[2 * i] + b[2 * i + 1] + 2) >> 2);
}

void add_row(const std::uint8_t* src, std::uint16_t* __restrict sums, int count) {
  for (int i = 0; i < count; ++i) sums[i] = static_cast<std::uint16_t>(sums[i] + src[i]);
}

// Adds up by column how much a row differs from the last look.
void compare_looks(const std::uint8_t* now, const std::uint8_t* before, std::uint16_t* __restrict sums, int count) {
  for (int i = 0; i < count; ++i) {
    std::uint8_t above = now[i] > before[i] ? now[i] - before[i] : 0, below = before[i] > now[i] ? before[i] - now[i] : 0;
    sums[i] = static_cast<std::uint16_t>(sums[i] + (above | below));
  }
}

// Adds up changed pixels and differences by column, and lets the background follow by `move` (0 or 1) levels.
void compare_row(const std::uint8_t* now, std::uint8_t* __restrict background, std::uint8_t* __restrict counts,
                 std::int16_t* __restrict sums, std::uint8_t move, int count) {
  for (int i = 0; i < count; ++i) {
    std::uint8_t n = now[i], b = background[i];
    std::uint8_t above = n > b ? n - b : 0, below = b > n ? b - n : 0;
    counts[i] = static_cast<std::uint8_t>(counts[i] + ((above | below) > kThreshold ? 1 : 0));
    sums[i] = static_cast<std::int16_t>(sums[i] + n - b);
    background[i] = static_cast<std::uint8_t>(b + std::min(above, move) - std::min(below, move));
  }
}

}  // namespace

void MotionGate::configure(const camera::MotionGating& settings) {
  if (settings.downscale != settings_.downscale) width_ = height_ = 0;
  settings_ = settings;
}

void MotionGate::start_over(int width, int height) {
  width_ = width, height_ = height;
  int finest = std::max(1, std::min(width, height));
  step_ = std::clamp(static_cast<int>(std::lround(1 / std::clamp(settings_.downscale, 0.01, 1.0))), 1, finest);
  columns_ = width / step_, rows_ = height / step_;
  cell_ = std::max(1, 8 / step_);
  cells_x_ = (columns_ + cell_ - 1) / cell_, cells_y_ = (rows_ + cell_ - 1) / cell_;
  size_t pixels = static_cast<size_t>(columns_) * static_cast<size_t>(rows_);
  now_.assign(pixels, 0);
  background_.assign(pixels, 0);
  before_.assign(pixels, 0);
  row_counts_.assign(static_cast<size_t>(cells_x_ * cell_), 0);
  row_sums_.assign(static_cast<size_t>(cells_x_ * cell_), 0);
  row_moves_.assign(static_cast<size_t>(cells_x_ * cell_), 0);
  cell_counts_.assign(static_cast<size_t>(cells_x_) * static_cast<size_t>(cells_y_), 0);
  still_looks_.assign(cell_counts_.size(), 0);
  column_sums_.assign(static_cast<size_t>(columns_ * step_), 0);
}

void MotionGate::shrink(const std::uint8_t* luma, std::ptrdiff_t stride) {
  for (int y = 0; y < rows_; ++y) {
    const std::uint8_t* src = luma + stride * y * step_;
    std::uint8_t* dst = now_.data() + static_cast<ptrdiff_t>(y) * columns_;
    if (step_ == 1) {
      std::memcpy(dst, src, static_cast<size_t>(columns_));
    } else if (step_ == 2) {
      average_pairs(src, src + stride, dst, columns_);
    } else {
      std::ranges::fill(column_sums_, 0);
      for (int i = 0; i < step_; ++i) add_row(src + stride * i, column_sums_.data(), columns_ * step_);
      for (int x = 0; x < columns_; ++x) {
        unsigned sum = 0;
        for (int i = 0; i < step_; ++i) sum += column_sums_[static_cast<size_t>(x * step_ + i)];
        dst[x] = static_cast<std::uint8_t>(sum / static_cast<unsigned>(step_ * step_));
      }
    }
  }
}

// The median difference to the background, over blocks that lie spread out: what most of the picture agrees on.
int MotionGate::light_change() const {
  std::array<int, 511> histogram{};
  int samples = 0;
  for (int y = 0; y + kBlock <= rows_; y += kBlocksApart)
    for (int x = 0; x + kBlock <= columns_; x += kBlocksApart, ++samples) {
      int sum = 0;
      for (int i = 0; i < kBlock * kBlock; ++i) {
        auto at = static_cast<size_t>((y + i / kBlock) * columns_ + x + i % kBlock);
        sum += now_[at] - background_[at];
      }
      ++histogram[static_cast<size_t>(255 + sum / (kBlock * kBlock))];
    }
  int seen = 0;
  for (int i = 0; i < 511; ++i)
    if ((seen += histogram[static_cast<size_t>(i)]) * 2 > samples) return i - 255;
  return 0;
}

void MotionGate::follow_light(int levels) {
  for (std::uint8_t& b : background_) b = static_cast<std::uint8_t>(std::clamp(b + levels, 0, 255));
}

void MotionGate::compare(bool learn) {
  int pixels = cell_ * cell_, few = pixels / 8;
  for (int cy = 0; cy < cells_y_; ++cy) {
    std::ranges::fill(row_counts_, 0);
    std::ranges::fill(row_sums_, 0);
    std::ranges::fill(row_moves_, 0);
    for (int y = cy * cell_; y < std::min(rows_, (cy + 1) * cell_); ++y) {
      std::ptrdiff_t at = static_cast<std::ptrdiff_t>(y) * columns_;
      compare_looks(now_.data() + at, before_.data() + at, row_moves_.data(), columns_);
      compare_row(now_.data() + at, background_.data() + at, row_counts_.data(), row_sums_.data(), learn ? 1 : 0,
                  columns_);
    }
    for (int cx = 0; cx < cells_x_; ++cx) {
      int changed = 0, sum = 0, moves = 0;
      for (int i = cx * cell_; i < (cx + 1) * cell_; ++i) {
        changed += row_counts_[static_cast<size_t>(i)];
        sum += row_sums_[static_cast<size_t>(i)];
        moves += row_moves_[static_cast<size_t>(i)];
      }
      bool real = changed > few && std::abs(sum) >= kCellThreshold * pixels;
      if (settled(cx, cy, moves <= kStillMean * pixels) && real) {
        take_in(cx, cy);
        real = false;
      }
      if (changed * 2 >= pixels) changed = pixels;  // a body has spots of the background's own grey
      cell_counts_[static_cast<size_t>(cy * cells_x_ + cx)] = static_cast<std::uint16_t>(real ? changed : 0);
    }
  }
}

// Whether the cell has stood still for long enough to belong to the background.
bool MotionGate::settled(int cx, int cy, bool still) {
  std::uint8_t& looks = still_looks_[static_cast<size_t>(cy * cells_x_ + cx)];
  looks = static_cast<std::uint8_t>(still ? std::min(looks + 1, kStillLooks) : 0);
  return looks == kStillLooks;
}

void MotionGate::take_in(int cx, int cy) {
  int width = std::min(cell_, columns_ - cx * cell_);
  for (int y = cy * cell_; y < std::min(rows_, (cy + 1) * cell_); ++y) {
    std::ptrdiff_t at = static_cast<std::ptrdiff_t>(y) * columns_ + cx * cell_;
    std::copy_n(now_.begin() + at, width, background_.begin() + at);
  }
}

// Cells with changed pixels that touch, also by a corner, are one patch. Takes the counts with it.
std::int64_t MotionGate::largest_patch_px() {
  std::int64_t largest = 0;
  for (int start = 0; start < cells_x_ * cells_y_; ++start) {
    std::int64_t patch = 0;
    auto take = [&](int cell) {
      std::uint16_t& count = cell_counts_[static_cast<size_t>(cell)];
      if (count == 0) return;
      patch += count;
      count = 0;
      pending_.push_back(cell);
    };
    take(start);
    while (!pending_.empty()) {
      int x = pending_.back() % cells_x_, y = pending_.back() / cells_x_;
      pending_.pop_back();
      for (int ny = std::max(0, y - 1); ny <= std::min(cells_y_ - 1, y + 1); ++ny)
        for (int nx = std::max(0, x - 1); nx <= std::min(cells_x_ - 1, x + 1); ++nx) take(ny * cells_x_ + nx);
    }
    largest = std::max(largest, patch);
  }
  return largest * step_ * step_;
}

std::int64_t MotionGate::changed_area(bool first) {
  std::int64_t everything = std::int64_t{width_} * height_;
  int light = first ? 0 : light_change();
  if (first || std::abs(light) >= kLightJump) {
    background_ = now_;
    return everything;
  }
  if (std::abs(light) > 1) follow_light(light);
  compare(++looks_ % kLooksALevel == 0);
  auto changed = cell_counts_.size() - static_cast<size_t>(std::ranges::count(cell_counts_, 0));
  if (static_cast<double>(changed) > kEverywhere * static_cast<double>(cell_counts_.size())) {
    background_ = now_;
    return everything;
  }
  return largest_patch_px();
}

Verdict MotionGate::look(const std::uint8_t* luma, std::ptrdiff_t stride, int width, int height) {
  if (!settings_.enabled || luma == nullptr || width <= 0 || height <= 0) return {false, true, 0};
  bool first = width != width_ || height != height_;
  if (first) start_over(width, height);
  shrink(luma, stride);
  std::int64_t area = changed_area(first);
  std::swap(before_, now_);
  bool moved = area > 0 && area >= settings_.min_area_px;
  looks_since_motion_ = moved ? 0 : looks_since_motion_ + 1;
  return {moved, looks_since_motion_ <= settings_.cooldown_frames, area};
}

}  // namespace weir::motion
