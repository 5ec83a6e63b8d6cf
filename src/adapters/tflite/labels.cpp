#include "weir/tflite/labels.hpp"

#include "packed_labels.hpp"

#include <fmt/format.h>

namespace weir::tflite {

Result<std::vector<std::string>> labels_of(const ModelFiles& files, std::string_view bytes) {
  if (!files.labels.empty()) return read_labels(files.labels);
  auto labels = packed_labels(bytes);
  if (labels.empty()) return model_failure(fmt::format("{} carries no labels: name a file that does", files.model));
  return labels;
}

}  // namespace weir::tflite
