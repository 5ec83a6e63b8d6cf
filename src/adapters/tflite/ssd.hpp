// Ssd: how the outputs of a detection model are told apart and read. Pure functions; any thread.
#pragma once

#include "weir/ports/detector.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::tflite {

// Which output is what.
struct Layout {
  size_t boxes = 0, classes = 0, scores = 0, count = 0;
  int slots = 0;  // the most detections that fit
  friend bool operator==(const Layout&, const Layout&) = default;
};

// The shapes tell which output is which: boxes [1,N,4], count [1], classes and scores [1,N]. These two look alike;
// where the boxes come first classes precede scores (as the operator answers), where they come second scores stand
// first and classes last (as newer exporters order them). Any other order is not recognised.
std::optional<Layout> recognise(const std::vector<std::vector<int>>& shapes);

struct Outputs {
  std::span<const float> boxes, classes, scores;  // boxes: top, left, bottom, right as shares of the region
  float count = 0;
};

// Classes without a label ("" or "???") are those that the model was never taught.
std::vector<Detection> read_outputs(const Outputs& outputs, const std::vector<std::string>& labels,
                                    const Region& region, double min_score);

}  // namespace weir::tflite
