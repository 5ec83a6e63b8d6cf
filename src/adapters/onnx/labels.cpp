#include "weir/onnx/labels.hpp"

#include "yolo.hpp"

#include "weir/base/plain_file.hpp"

#include <fmt/format.h>

namespace weir::onnx {

namespace {

// The fields of a protocol buffer in their order; ends where the bytes make no sense.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}

  // False at the end. `bytes` is empty of a field that is a number.
  bool next(std::uint64_t& field, std::string_view& bytes) {
    std::uint64_t tag = 0, number = 0;
    bytes = {};
    if (rest_.empty() || !take_varint(tag)) return false;
    field = tag >> 3;
    switch (tag & 7) {
      case 0: return take_varint(number);
      case 1: return take(8, bytes);
      case 2: return take_varint(number) && take(number, bytes);
      case 5: return take(4, bytes);
      default: return false;
    }
  }

  bool at_end() const { return rest_.empty(); }

 private:
  bool take_varint(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      auto byte = static_cast<std::uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool take(std::uint64_t count, std::string_view& bytes) {
    if (count > rest_.size()) return false;
    bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return true;
  }
  std::string_view rest_;
};

constexpr std::uint64_t kGraph = 7, kMetadata = 14, kKey = 1, kValue = 2;

}  // namespace

bool is_model(std::string_view bytes) {
  std::uint64_t field = 0;
  std::string_view part;
  bool graph = false;
  Fields fields(bytes);
  while (fields.next(field, part)) graph |= field == kGraph && !part.empty();
  return graph && fields.at_end();
}

std::string_view metadata_of(std::string_view model, std::string_view key) {
  std::uint64_t field = 0, member = 0;
  std::string_view bytes, part;
  for (Fields fields(model); fields.next(field, bytes);) {
    if (field != kMetadata) continue;
    std::string_view name, value;
    for (Fields entry(bytes); entry.next(member, part);) {
      if (member == kKey) name = part;
      if (member == kValue) value = part;
    }
    if (name == key) return value;
  }
  return {};
}

std::vector<std::string> packed_names(std::string_view model) { return parse_names(metadata_of(model, "names")); }

Result<std::vector<std::string>> labels_of(const ModelFiles& files) {
  if (!files.labels.empty()) {
    TRY(text, for_model(read_plain_file(files.labels, kLabelsBytesMax)));
    return split_labels(text);
  }
  TRY(bytes, for_model(read_plain_file(files.model, kModelBytesMax)));
  auto names = packed_names(bytes);
  if (names.empty())
    return model_failure(fmt::format("{} carries no names: what it can say is not known", files.model));
  return names;
}

}  // namespace weir::onnx
