// Yolo: how a model of that family wants its picture, and what its numbers mean. Pure functions; any thread.
#pragma once

#include "weir/ports/detector.hpp"

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::onnx {

// v5 (and v7): rows of centre, size, objectness, classes, in pixels of the input.
// v8 (and v9, 11, v5u): the same turned on its side and without objectness.
// x:  as v5, but positions are relative to their grid cell and sizes are logarithms; the picture is BGR, 0 to 255, and
//     stands at the top left; the others take RGB, 0 to 1, and stand in the middle.
enum class Family { v5, v8, x };

struct Layout {
  Family family = Family::v8;
  int width = 0, height = 0;  // of the input
  int boxes = 0;              // places that the model reports on
  int classes = 0;
  friend bool operator==(const Layout&, const Layout&) = default;
};

// The output's shape without its batch. A model looks at every cell of grids that are 8, 16 and 32 (some also 64)
// pixels wide: G cells in all. [4+C,G] is v8; [3G,5+C] is v5, which has three anchors a cell; [G,5+C] is x, which has
// none. Anything else, such as a model that has already merged its boxes, is not recognised.
std::optional<Layout> recognise(int width, int height, std::span<const std::int64_t> shape);

// Where a region of the picture comes to stand in the input.
struct Fit {
  double scale = 1;  // input pixels a picture pixel
  int x = 0, y = 0;  // left top of the picture in the input
  int width = 0, height = 0;
  friend bool operator==(const Fit&, const Fit&) = default;
};
Fit fit(const Layout& layout, const Region& region);

// Packed RGB of the fit's size → planes of floats of the input's size, grey bars included.
void fill(const Layout& layout, const Fit& fit, std::span<const std::uint8_t> rgb, std::span<float> planes);

struct Candidate {
  Box box;  // pixels of the input
  float score = 0;
  int klass = 0;
};
std::vector<Candidate> decode(const Layout& layout, std::span<const float> output, double min_score);

// Of boxes of one class that overlap by more than `iou_max` only the most certain stays. Most certain first.
std::vector<Candidate> suppress(std::vector<Candidate> candidates, double iou_max);

// The value of the metadata's `names`: a Python dictionary such as {0: 'person', 1: 'bicycle'}. Empty where it is none.
std::vector<std::string> parse_names(std::string_view text);
// COCO's 80 classes.
const std::vector<std::string>& coco_names();

}  // namespace weir::onnx
