#include "yolo.hpp"

#include <cmath>

namespace weir::onnx {

namespace {

constexpr int kFinest = 8, kCoarsest = 64;  // widths of grid cells
constexpr float kGrey = 114;                // of the bars, as in training
constexpr size_t kCandidatesMax = 3000;     // beyond that a picture holds nothing but noise

int cells(int width, int height, int coarsest) {
  int sum = 0;
  for (int stride = kFinest; stride <= coarsest; stride *= 2) sum += (width / stride) * (height / stride);
  return sum;
}

// How many grids the model has: the coarsest cell width for which its count of places comes out.
int coarsest(const Layout& layout) { return layout.boxes == cells(layout.width, layout.height, 32) ? 32 : kCoarsest; }

struct Corners {
  float cx, cy, w, h;
};

void add(std::vector<Candidate>& out, Corners c, float score, int klass) {
  if (!std::isfinite(c.cx + c.cy + c.w + c.h) || !std::isfinite(score) || c.w <= 0 || c.h <= 0) return;
  out.push_back({{c.cx - c.w / 2, c.cy - c.h / 2, c.cx + c.w / 2, c.cy + c.h / 2}, score, klass});
}

// One column a place: walking class by class keeps the reads in order.
std::vector<Candidate> decode_columns(const Layout& layout, const float* output, float min_score) {
  auto count = static_cast<size_t>(layout.boxes);
  const float* scores = output + 4 * count;
  std::vector<float> best(scores, scores + count);
  std::vector<int> klass(count, 0);
  for (int c = 1; c < layout.classes; ++c) {
    const float* row = scores + static_cast<size_t>(c) * count;
    for (size_t i = 0; i < count; ++i) {
      bool better = row[i] > best[i];
      best[i] = better ? row[i] : best[i];
      klass[i] = better ? c : klass[i];
    }
  }
  std::vector<Candidate> out;
  for (size_t i = 0; i < count; ++i)
    if (best[i] >= min_score)
      add(out, {output[i], output[count + i], output[2 * count + i], output[3 * count + i]}, best[i], klass[i]);
  return out;
}

// One row a place; `place` turns its first four numbers into pixels.
template <class Place>
void decode_row(const float* row, int classes, float min_score, std::vector<Candidate>& out, Place place) {
  float object = row[4];
  if (!(object >= min_score)) return;  // a class's score is at most 1
  const float* best = std::max_element(row + 5, row + 5 + classes);
  if (object * *best >= min_score) add(out, place(row), object * *best, static_cast<int>(best - row - 5));
}

std::vector<Candidate> decode_rows(const Layout& layout, const float* output, float min_score) {
  std::vector<Candidate> out;
  for (int i = 0; i < layout.boxes; ++i)
    decode_row(output + static_cast<size_t>(i) * static_cast<size_t>(5 + layout.classes), layout.classes, min_score,
               out, [](const float* r) {
                 return Corners{r[0], r[1], r[2], r[3]};
               });
  return out;
}

std::vector<Candidate> decode_grids(const Layout& layout, const float* row, float min_score) {
  std::vector<Candidate> out;
  for (int stride = kFinest; stride <= coarsest(layout); stride *= 2)
    for (int y = 0; y < layout.height / stride; ++y)
      for (int x = 0; x < layout.width / stride; ++x, row += 5 + layout.classes)
        decode_row(row, layout.classes, min_score, out, [&](const float* r) {
          auto s = static_cast<float>(stride);
          return Corners{(r[0] + static_cast<float>(x)) * s, (r[1] + static_cast<float>(y)) * s, std::exp(r[2]) * s,
                         std::exp(r[3]) * s};
        });
  return out;
}

double overlap(const Box& a, const Box& b) {
  double w = std::min(a.x2, b.x2) - std::max(a.x1, b.x1), h = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  if (w <= 0 || h <= 0) return 0;
  return w * h / ((a.x2 - a.x1) * (a.y2 - a.y1) + (b.x2 - b.x1) * (b.y2 - b.y1) - w * h);
}

}  // namespace

std::optional<Layout> recognise(int width, int height, std::span<const std::int64_t> shape) {
  if (shape.size() != 2 || shape[0] > 1'000'000 || shape[1] > 1'000'000) return std::nullopt;
  int first = static_cast<int>(shape[0]), second = static_cast<int>(shape[1]);
  for (int coarse : {32, kCoarsest}) {
    int grid = cells(width, height, coarse);
    if (grid <= 0) continue;
    if (second == grid && first > 4) return Layout{Family::v8, width, height, grid, first - 4};
    if (first == 3 * grid && second > 5) return Layout{Family::v5, width, height, 3 * grid, second - 5};
    if (first == grid && second > 5) return Layout{Family::x, width, height, grid, second - 5};
  }
  return std::nullopt;
}

Fit fit(const Layout& layout, const Region& region) {
  Fit f;
  f.scale = std::min(double(layout.width) / region.width, double(layout.height) / region.height);
  f.width = std::clamp(static_cast<int>(std::lround(region.width * f.scale)), 1, layout.width);
  f.height = std::clamp(static_cast<int>(std::lround(region.height * f.scale)), 1, layout.height);
  if (layout.family != Family::x) f.x = (layout.width - f.width) / 2, f.y = (layout.height - f.height) / 2;
  return f;
}

void fill(const Layout& layout, const Fit& fit, std::span<const std::uint8_t> rgb, std::span<float> planes) {
  bool bgr = layout.family == Family::x;
  float unit = bgr ? 1 : 1 / 255.0F;
  auto width = static_cast<size_t>(layout.width), plane = width * static_cast<size_t>(layout.height);
  std::ranges::fill(planes, kGrey * unit);
  for (int y = 0; y < fit.height; ++y) {
    const std::uint8_t* src = rgb.data() + static_cast<size_t>(y) * static_cast<size_t>(fit.width) * 3;
    float* dst = planes.data() + static_cast<size_t>(fit.y + y) * width + static_cast<size_t>(fit.x);
    float *red = dst + (bgr ? 2 * plane : 0), *green = dst + plane, *blue = dst + (bgr ? 0 : 2 * plane);
    for (int x = 0; x < fit.width; ++x) {
      red[x] = static_cast<float>(src[3 * x]) * unit;
      green[x] = static_cast<float>(src[3 * x + 1]) * unit;
      blue[x] = static_cast<float>(src[3 * x + 2]) * unit;
    }
  }
}

std::vector<Candidate> decode(const Layout& layout, std::span<const float> output, double min_score) {
  auto floor = static_cast<float>(min_score);
  size_t numbers = layout.family == Family::v8 ? 4 : 5;
  if (output.size() < static_cast<size_t>(layout.boxes) * (numbers + static_cast<size_t>(layout.classes))) return {};
  switch (layout.family) {
    case Family::v5: return decode_rows(layout, output.data(), floor);
    case Family::x: return decode_grids(layout, output.data(), floor);
    case Family::v8: break;
  }
  return decode_columns(layout, output.data(), floor);
}

std::vector<Candidate> suppress(std::vector<Candidate> candidates, double iou_max) {
  std::ranges::stable_sort(candidates, std::greater{}, &Candidate::score);
  if (candidates.size() > kCandidatesMax) candidates.resize(kCandidatesMax);
  std::vector<Candidate> kept;
  for (const Candidate& c : candidates)
    if (std::ranges::none_of(kept,
                             [&](const Candidate& k) { return k.klass == c.klass && overlap(k.box, c.box) > iou_max; }))
      kept.push_back(c);
  return kept;
}

}  // namespace weir::onnx
