#include "yolo.hpp"

#include <charconv>

namespace weir::onnx {

namespace {

constexpr int kClassesMax = 10'000;

// Walks over a Python dictionary of whole numbers and quoted texts.
struct Walker {
  std::string_view text;
  size_t at = 0;

  void skip_space() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n')) ++at;
  }
  bool take(char c) {
    skip_space();
    if (at >= text.size() || text[at] != c) return false;
    ++at;
    return true;
  }
  std::optional<int> number() {
    skip_space();
    int value = -1;
    auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (error != std::errc{} || value < 0 || value >= kClassesMax) return std::nullopt;
    at = static_cast<size_t>(end - text.data());
    return value;
  }
  std::optional<std::string> quoted() {
    char quote = take('\'') ? '\'' : take('"') ? '"' : '\0';
    std::string out;
    for (; quote != '\0' && at < text.size(); ++at) {
      if (text[at] == quote) return ++at, out;
      if (text[at] == '\\' && at + 1 < text.size()) ++at;
      out.push_back(text[at]);
    }
    return std::nullopt;
  }
};

}  // namespace

std::vector<std::string> parse_names(std::string_view text) {
  Walker walker{text};
  std::vector<std::string> names;
  if (!walker.take('{')) return {};
  while (!walker.take('}')) {
    auto index = walker.number();
    if (!index || !walker.take(':')) return {};
    auto name = walker.quoted();
    if (!name) return {};
    if (names.size() <= static_cast<size_t>(*index)) names.resize(static_cast<size_t>(*index) + 1);
    names[static_cast<size_t>(*index)] = std::move(*name);
    if (!walker.take(',')) return walker.take('}') ? names : std::vector<std::string>{};
  }
  return names;
}

const std::vector<std::string>& coco_names() {
  static const std::vector<std::string> names = {
      "person",         "bicycle",    "car",           "motorcycle",    "airplane",     "bus",           "train",
      "truck",          "boat",       "traffic light", "fire hydrant",  "stop sign",    "parking meter", "bench",
      "bird",           "cat",        "dog",           "horse",         "sheep",        "cow",           "elephant",
      "bear",           "zebra",      "giraffe",       "backpack",      "umbrella",     "handbag",       "tie",
      "suitcase",       "frisbee",    "skis",          "snowboard",     "sports ball",  "kite",          "baseball bat",
      "baseball glove", "skateboard", "surfboard",     "tennis racket", "bottle",       "wine glass",    "cup",
      "fork",           "knife",      "spoon",         "bowl",          "banana",       "apple",         "sandwich",
      "orange",         "broccoli",   "carrot",        "hot dog",       "pizza",        "donut",         "cake",
      "chair",          "couch",      "potted plant",  "bed",           "dining table", "toilet",        "tv",
      "laptop",         "mouse",      "remote",        "keyboard",      "cell phone",   "microwave",     "oven",
      "toaster",        "sink",       "refrigerator",  "book",          "clock",        "vase",          "scissors",
      "teddy bear",     "hair drier", "toothbrush"};
  return names;
}

}  // namespace weir::onnx
