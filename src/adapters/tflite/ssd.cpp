#include "ssd.hpp"

#include <cmath>

namespace weir::tflite {

std::optional<Layout> recognise(const std::vector<std::vector<int>>& shapes) {
  if (shapes.size() != 4) return std::nullopt;
  auto boxes_at = [&](size_t i) { return shapes[i].size() == 3 && shapes[i][0] == 1 && shapes[i][2] == 4; };
  Layout layout;
  if (boxes_at(0)) {
    layout = {0, 1, 2, 3};
  } else if (boxes_at(1)) {
    layout = {1, 3, 0, 2};
  } else {
    return std::nullopt;
  }
  layout.slots = shapes[layout.boxes][1];
  std::vector<int> each = {1, layout.slots};
  bool fits = layout.slots > 0 && shapes[layout.classes] == each && shapes[layout.scores] == each &&
              shapes[layout.count] == std::vector<int>{1};
  return fits ? std::optional(layout) : std::nullopt;
}

std::vector<Detection> read_outputs(const Outputs& outputs, const std::vector<std::string>& labels,
                                    const Region& region, double min_score) {
  std::vector<Detection> found;
  size_t slots = std::min({outputs.boxes.size() / 4, outputs.classes.size(), outputs.scores.size()});
  for (size_t i = 0; i < slots && static_cast<float>(i) < outputs.count; ++i) {
    float score = outputs.scores[i], index = outputs.classes[i];
    const float* b = outputs.boxes.data() + 4 * i;
    bool numbers = std::isfinite(b[0]) && std::isfinite(b[1]) && std::isfinite(b[2]) && std::isfinite(b[3]);
    if (!numbers || !(score >= min_score) || !(index >= 0) || index >= static_cast<float>(labels.size())) continue;
    const std::string& label = labels[static_cast<size_t>(index)];
    Box box = clipped({region.x + b[1] * double(region.width), region.y + b[0] * double(region.height),
                       region.x + b[3] * double(region.width), region.y + b[2] * double(region.height)},
                      region);
    if (label.empty() || label == "???" || box.x1 >= box.x2 || box.y1 >= box.y2) continue;
    found.push_back({label, std::min(double(score), 1.0), box});
  }
  return found;
}

}  // namespace weir::tflite
