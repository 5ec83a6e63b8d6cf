#include "weir/tflite/labels.hpp"

#include "packed_labels.hpp"

#include "weir/base/plain_file.hpp"

#include <fmt/format.h>

#include <charconv>

namespace weir::tflite {

namespace {
constexpr size_t kClassesMax = 100'000;

// "0  person" or "0: person": the number is the class, and lists leave out what a model was never taught. Where not
// every line is so, with rising numbers, they belong to the names.
std::vector<std::string> by_number(std::vector<std::string> lines) {
  std::vector<std::string> labels;
  for (const std::string& line : lines) {
    if (line.empty()) continue;
    size_t number = 0;
    auto read = std::from_chars(line.data(), line.data() + line.size(), number);
    size_t end = static_cast<size_t>(read.ptr - line.data()), name = line.find_first_not_of(": \t", end);
    if (read.ec != std::errc{} || name == end || name == line.npos || number < labels.size() || number > kClassesMax)
      return lines;
    labels.resize(number);
    labels.push_back(line.substr(name));
  }
  bool from_one = labels.size() > 1 && labels[0].empty() && !labels[1].empty();
  if (from_one) labels.erase(labels.begin());
  return labels;
}

// The background, which lists begin with and the model's answers do not count, is no class.
std::vector<std::string> classes(std::vector<std::string> lines) {
  std::vector<std::string> labels = by_number(std::move(lines));
  if (!labels.empty() && (labels[0] == "???" || labels[0] == "background")) labels.erase(labels.begin());
  return labels;
}
}  // namespace

bool is_model(std::string_view bytes) { return bytes.size() > 8 && bytes.substr(4, 4) == "TFL3"; }

std::string_view metadata_of(std::string_view model, std::string_view name) { return packed_text(model, name); }

Result<std::vector<std::string>> labels_of(const ModelFiles& files, std::string_view bytes) {
  if (!files.labels.empty()) {
    TRY(text, for_model(read_plain_file(files.labels, kLabelsBytesMax)));
    return classes(split_labels(text));
  }
  auto labels = classes(packed_labels(bytes));
  if (labels.empty()) return model_failure(fmt::format("{} carries no labels: name a file that does", files.model));
  return labels;
}

}  // namespace weir::tflite
