#include "onnx_writer.hpp"

namespace weir::onnx {

namespace {

// The oldest that has what is used here.
constexpr std::int64_t kIrVersion = 7, kOpset = 13;
constexpr std::string_view kOwnOperators = "com.microsoft";

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

}  // namespace

std::string OnnxWriter::field(int number, std::string_view bytes) {
  std::string out;
  put_varint(out, static_cast<std::uint64_t>(number) << 3 | 2);
  put_varint(out, bytes.size());
  return out.append(bytes);
}

std::string OnnxWriter::field(int number, std::int64_t value) {
  std::string out;
  put_varint(out, static_cast<std::uint64_t>(number) << 3);
  put_varint(out, static_cast<std::uint64_t>(value));
  return out;
}

std::string OnnxWriter::attribute(const Attribute& from) {
  enum { name = 1, integer = 3, word = 4, integers = 8, type = 20 };
  std::string out = field(name, from.name);
  if (auto* number = std::get_if<std::int64_t>(&from.value)) return out + field(integer, *number) + field(type, 2);
  if (auto* text = std::get_if<std::string_view>(&from.value)) return out + field(word, *text) + field(type, 3);
  for (std::int64_t each : std::get<Dims>(from.value)) out += field(integers, each);
  return out + field(type, 7);
}

void OnnxWriter::node(std::string_view op, const std::vector<std::string>& inputs, const std::string& output,
                      const std::vector<Attribute>& attributes, bool own) {
  std::string node;
  for (const std::string& each : inputs) node += field(1, each);
  node += field(2, output) + field(4, op);
  for (const Attribute& each : attributes) node += field(5, attribute(each));
  if (own) node += field(7, kOwnOperators);
  graph_ += field(1, node);
}

std::string OnnxWriter::constant(const std::string& name, std::int64_t type, std::string_view raw, const Dims& dims) {
  if (!constants_.insert(name).second) return name;
  std::string tensor;
  for (std::int64_t side : dims) tensor += field(1, side);
  graph_ += field(5, tensor + field(2, type) + field(8, name) + field(9, raw));
  return name;
}

std::string OnnxWriter::value_of_bytes(const std::string& name, const Dims& dims) {
  std::string shape;
  for (std::int64_t side : dims) shape += field(1, field(1, side));
  std::string tensor = field(1, type_of(std::uint8_t{})) + field(2, shape);
  return field(1, name) + field(2, field(1, tensor));
}

std::string OnnxWriter::finish() const {
  auto operators = [](std::string_view of, std::int64_t version) { return field(8, field(1, of) + field(2, version)); };
  return field(1, kIrVersion) + field(7, field(2, "model") + graph_) + operators("", kOpset) +
         operators(kOwnOperators, 1);
}

}  // namespace weir::onnx
