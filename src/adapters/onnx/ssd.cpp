#include "ssd.hpp"

#include <algorithm>
#include <cmath>

namespace weir::onnx {

namespace {

constexpr size_t kStretch = 256;  // bytes that are looked at as one

struct Certain {
  size_t anchor = 0;
  int klass = 0;
  float score = 0;
};

std::uint8_t largest(std::span<const std::uint8_t> bytes) {
  std::uint8_t most = 0;
  for (std::uint8_t each : bytes) most = std::max(most, each);
  return most;
}

// The anchor's class, which is the first of those that are most certain.
Certain judge(const SsdHead& head, std::span<const std::uint8_t> scores, size_t anchor) {
  auto columns = static_cast<size_t>(head.columns), background = static_cast<size_t>(head.background);
  auto row = scores.subspan(anchor * columns + background, columns - background);
  float most = head.score_of[largest(row)];
  auto first = std::ranges::find_if(row, [&](std::uint8_t byte) { return head.score_of[byte] >= most; });
  return {anchor, static_cast<int>(first - row.begin()), most};
}

// Nearly all places show nothing: long stretches are dismissed by their largest byte.
std::vector<Certain> certain_ones(const SsdHead& head, std::span<const std::uint8_t> scores, double min_score) {
  auto limit = std::ranges::find_if(head.score_of, [&](float s) { return s >= min_score && s >= head.min_score; });
  std::vector<Certain> found;
  auto columns = static_cast<size_t>(head.columns);
  for (size_t at = 0, next = 0; at < scores.size(); at += kStretch) {
    size_t until = std::min(at + kStretch, scores.size());
    if (largest(scores.subspan(at, until - at)) < limit - head.score_of.begin()) continue;
    for (next = std::max(next, at / columns); next < (until + columns - 1) / columns; ++next) {
      Certain one = judge(head, scores, next);
      if (one.score >= min_score && one.score >= head.min_score) found.push_back(one);
    }
  }
  return found;
}

SsdBox box_at(const SsdHead& head, std::span<const std::uint8_t> offsets, const Certain& one) {
  const SsdHead::Anchor& anchor = head.anchors[one.anchor];
  auto offset = [&](size_t which) { return head.offset_of[offsets[4 * one.anchor + which]]; };
  float y = offset(0) / head.scale.y * anchor.height + anchor.y;
  float x = offset(1) / head.scale.x * anchor.width + anchor.x;
  float half_height = 0.5F * std::exp(offset(2) / head.scale.height) * anchor.height;
  float half_width = 0.5F * std::exp(offset(3) / head.scale.width) * anchor.width;
  return {y - half_height, x - half_width, y + half_height, x + half_width, one.score, one.klass};
}

float overlap(const SsdBox& a, const SsdBox& b) {
  auto area = [](const SsdBox& box) { return (box.bottom - box.top) * (box.right - box.left); };
  float area_a = area(a), area_b = area(b);
  if (!(area_a > 0) || !(area_b > 0)) return 0;
  float height = std::max(0.F, std::min(a.bottom, b.bottom) - std::max(a.top, b.top));
  float width = std::max(0.F, std::min(a.right, b.right) - std::max(a.left, b.left));
  return height * width / (area_a + area_b - height * width);
}

}  // namespace

std::vector<SsdBox> find_boxes(const SsdHead& head, std::span<const std::uint8_t> offsets,
                               std::span<const std::uint8_t> scores, double min_score) {
  std::vector<Certain> certain = certain_ones(head, scores, min_score);
  std::ranges::stable_sort(certain, std::ranges::greater{}, &Certain::score);
  std::vector<SsdBox> kept;
  for (const Certain& one : certain) {
    if (kept.size() == static_cast<size_t>(head.boxes_max)) break;
    SsdBox box = box_at(head, offsets, one);
    auto hides = [&](const SsdBox& better) { return overlap(better, box) > head.iou_max; };
    if (std::ranges::none_of(kept, hides)) kept.push_back(box);
  }
  return kept;
}

}  // namespace weir::onnx
