// TfliteFile: what stands in a .tflite file, as plain values whose indices are known to be good.
//
// Only models of one graph, without sparse tensors. Constants point into the file, which must outlive what was read.
// Pure functions; any thread.
#pragma once

#include "flatbuffer.hpp"

#include "weir/base/result.hpp"

#include <optional>

namespace weir::onnx {

// The format's own numbers for the types and operators that this folder uses.
enum class TensorType : std::int8_t { float32 = 0, int32 = 2, uint8 = 3, int8 = 9 };
enum class Op : std::int32_t {
  add = 0,
  concatenation = 2,
  conv = 3,
  depthwise_conv = 4,
  dequantize = 6,
  logistic = 14,
  max_pool = 17,
  reshape = 22,
  custom = 32,
  resize_nearest = 97,
  quantize = 114
};

struct Tensor {
  std::vector<std::int32_t> shape = {};  // every side at least 1; empty where the file leaves it open
  TensorType type = TensorType::float32;
  std::string_view constant = {};  // exactly as many bytes as the shape asks for; empty: computed
  std::vector<float> scales = {};  // one, or one a channel; all of them finite and above 0
  std::vector<std::int64_t> zeros = {};
  std::int32_t channel_axis = 0;

  size_t count() const;
};

struct Step {
  Op op = {};
  std::string custom = {};                // the name of an operator that is not built in
  std::vector<std::int32_t> inputs = {};  // -1: left out
  std::vector<std::int32_t> outputs = {};
  Table options;
  std::string_view custom_options = {};
};

struct TfliteGraph {
  std::vector<Tensor> tensors = {};
  std::vector<std::int32_t> inputs = {}, outputs = {};
  std::vector<Step> steps = {};
};

// `damage` is that of the file; the steps' options go on reporting to it.
Result<TfliteGraph> read_tflite(std::string_view file, Damage& damage);

}  // namespace weir::onnx
