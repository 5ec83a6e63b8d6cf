// OnnxWriter: an ONNX model, written field by field in the protocol buffers that it is made of.
//
// Only what a translated model needs: operators whose attributes are integers, lists of integers and words; constants;
// inputs and outputs of bytes. Not shared between threads.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weir::onnx {

using Dims = std::vector<std::int64_t>;

struct Attribute {
  std::string_view name;
  std::variant<std::int64_t, Dims, std::string_view> value;
};

class OnnxWriter {
 public:
  // An operator of ONNX itself, or of the runtime's own set where `own` says so. An empty input is one left out.
  void node(std::string_view op, const std::vector<std::string>& inputs, const std::string& output,
            const std::vector<Attribute>& attributes = {}, bool own = false);

  // A constant of that name, and its name; one that was written before stays as it is. No dims: a single value.
  template <class T>
  std::string constant(const std::string& name, std::span<const T> values, const Dims& dims) {
    return constant(name, type_of(T{}), {reinterpret_cast<const char*>(values.data()), values.size_bytes()}, dims);
  }
  template <class T>
  std::string constant(const std::string& name, T value) {
    return constant(name, std::span<const T>(&value, 1), {});
  }

  void input(const std::string& name, const Dims& dims) { graph_ += field(11, value_of_bytes(name, dims)); }
  void output(const std::string& name, const Dims& dims) { graph_ += field(12, value_of_bytes(name, dims)); }

  // The whole model.
  std::string finish() const;

 private:
  // TensorProto's numbers for the types.
  static std::int64_t type_of(float) { return 1; }
  static std::int64_t type_of(std::uint8_t) { return 2; }
  static std::int64_t type_of(std::int8_t) { return 3; }
  static std::int64_t type_of(std::int32_t) { return 6; }
  static std::int64_t type_of(std::int64_t) { return 7; }

  static std::string field(int number, std::string_view bytes);
  static std::string field(int number, std::int64_t value);
  static std::string value_of_bytes(const std::string& name, const Dims& dims);
  static std::string attribute(const Attribute& from);
  std::string constant(const std::string& name, std::int64_t type, std::string_view raw, const Dims& dims);

  std::string graph_;
  std::set<std::string> constants_;
};

}  // namespace weir::onnx
