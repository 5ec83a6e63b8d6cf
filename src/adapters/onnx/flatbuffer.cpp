#include "flatbuffer.hpp"

#include <algorithm>
#include <bit>

namespace weir::onnx {

static_assert(std::endian::native == std::endian::little,
              "FlatBuffers are little-endian, and so is all that runs Weir");

bool Table::inside(size_t at, size_t bytes) const {
  bool good = at <= file_.size() && bytes <= file_.size() - at;
  if (!good) damage_->found = true;
  return good;
}

Table Table::root(std::string_view file, std::string_view mark, Damage& damage) {
  Table nothing(file, 0, damage);
  if (!nothing.inside(0, 8) || file.substr(4, 4) != mark) {
    damage.found = true;
    return nothing;
  }
  return {file, nothing.follow(0), damage};
}

size_t Table::place(int field) const {
  if (at_ == 0) return 0;
  // The list of a table's fields may stand before or behind it.
  auto signed_offset = static_cast<std::int64_t>(at_) - read<std::int32_t>(at_);
  if (signed_offset < 0) {
    damage_->found = true;
    return 0;
  }
  auto fields = static_cast<size_t>(signed_offset);
  size_t slot = 4 + 2 * static_cast<size_t>(field);
  if (slot + 2 > read<std::uint16_t>(fields)) return 0;
  std::uint16_t offset = read<std::uint16_t>(fields + slot);
  return offset == 0 ? 0 : at_ + offset;
}

Table Table::table(int field) const {
  size_t at = place(field);
  return {file_, at == 0 ? 0 : follow(at), *damage_};
}

Table::List Table::list(int field, size_t each, size_t count_max) const {
  size_t at = place(field);
  if (at == 0) return {};
  size_t begin = follow(at);
  size_t count = read<std::uint32_t>(begin);
  if (count > count_max || !inside(begin + 4, count * each)) {
    damage_->found = true;
    return {};
  }
  return {begin + 4, count};
}

std::vector<Table> Table::tables(int field, size_t count_max) const {
  List found = list(field, 4, count_max);
  std::vector<Table> all;
  for (size_t i = 0; i < found.count; ++i) all.push_back({file_, follow(found.at + 4 * i), *damage_});
  return all;
}

std::string_view Table::bytes(int field) const {
  List found = list(field, 1, file_.size());
  return file_.substr(found.at, found.count);
}

namespace {

// FlexBuffers' kinds of values, as far as a map of numbers has them.
enum Kind { kInt = 1, kUint = 2, kFloat = 3, kMap = 9, kBool = 26 };
constexpr size_t kNamesMax = 256;

// Numbers of 1, 2, 4 or 8 bytes; 0 outside.
struct Flex {
  std::string_view bytes;

  template <class T>
  T as(size_t at) const {
    T value{};
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    return value;
  }
  bool inside(size_t at, size_t width) const { return at <= bytes.size() && width <= bytes.size() - at; }
  std::uint64_t number(size_t at, size_t width) const {
    std::uint64_t value = 0;
    if (inside(at, width) && width <= 8) std::memcpy(&value, bytes.data() + at, width);
    return value;
  }
  double real(size_t at, size_t width) const {
    if (!inside(at, width)) return 0;
    return width == 4 ? double(as<float>(at)) : width == 8 ? as<double>(at) : 0;
  }
  std::int64_t integer(size_t at, size_t width) const {
    std::uint64_t value = number(at, width);
    int unused = 64 - 8 * static_cast<int>(width);
    return static_cast<std::int64_t>(value << unused) >> unused;
  }
  // What stands `offset` bytes before; the end of everything, where nothing is, when that is outside.
  size_t back(size_t at, std::uint64_t offset) const { return offset <= at ? at - offset : bytes.size(); }
  std::string text(size_t at) const {
    std::string_view rest = bytes.substr(std::min(at, bytes.size()));
    return std::string(rest.substr(0, rest.find('\0')));
  }
};

}  // namespace

// The last bytes say how wide the root is, of which kind, and how far back it lies. Before a map's values stand their
// count, the width of its keys and how far back these lie; behind the values one byte each for their kind.
std::map<std::string, double> read_number_map(std::string_view bytes) {
  Flex flex{bytes};
  if (bytes.size() < 3) return {};
  size_t root_width = std::uint8_t(bytes.back());
  std::uint8_t kind = std::uint8_t(bytes[bytes.size() - 2]);
  if (kind >> 2 != kMap || root_width == 0 || root_width > 8 || bytes.size() < 2 + root_width) return {};
  size_t width = size_t{1} << (kind & 3);
  size_t root = bytes.size() - 2 - root_width;
  size_t values = flex.back(root, flex.number(root, root_width));
  if (values < 3 * width) return {};
  size_t count = flex.number(values - width, width), key_width = flex.number(values - 2 * width, width);
  size_t keys = flex.back(values - 3 * width, flex.number(values - 3 * width, width));
  if (count > kNamesMax || (key_width != 1 && key_width != 2 && key_width != 4 && key_width != 8)) return {};

  std::map<std::string, double> read;
  for (size_t i = 0; i < count; ++i) {
    size_t key = keys + i * key_width, at = values + i * width, kind_at = values + count * width + i;
    if (!flex.inside(key, key_width) || !flex.inside(at, width) || !flex.inside(kind_at, 1)) return {};
    std::string name = flex.text(flex.back(key, flex.number(key, key_width)));
    switch (std::uint8_t(bytes[kind_at]) >> 2) {
      case kInt: read[name] = static_cast<double>(flex.integer(at, width)); break;
      case kUint:
      case kBool: read[name] = static_cast<double>(flex.number(at, width)); break;
      case kFloat: read[name] = flex.real(at, width); break;
      default: break;
    }
  }
  return read;
}

}  // namespace weir::onnx
