#include "weir/ports/model_labels.hpp"

#include <algorithm>

namespace weir {

namespace {
bool is_word(const std::string& text, size_t bytes_max) {
  return text.size() <= bytes_max && valid_utf8(text) &&
         std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}
}  // namespace

bool is_label(const std::string& text) { return !text.empty() && is_word(text, 64); }

std::string models_problem(const std::vector<ModelLabels>& models) {
  size_t labels = 0;
  bool sane = models.size() <= kModelsMax;
  for (const ModelLabels& model : models) {
    labels += model.labels.size();
    sane = sane && is_word(model.detector, 64) && is_word(model.name, 255) &&
           std::ranges::all_of(model.labels, is_label);
  }
  if (sane && labels <= kModelLabelsMax) return "";
  return fmt::format(
      "must hold at most {} models with {} labels in all, each of 1 to 64 bytes without control characters", kModelsMax,
      kModelLabelsMax);
}

}  // namespace weir
