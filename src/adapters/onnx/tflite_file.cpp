#include "tflite_file.hpp"

#include "weir/ports/model_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace weir::onnx {

namespace {

// Far above what detection models have.
constexpr size_t kTensorsMax = 20'000, kStepsMax = 10'000, kCodesMax = 1'000, kListMax = 256, kRankMax = 6;
constexpr size_t kChannelsMax = 1 << 16;
constexpr std::int64_t kSideMax = 1 << 20, kValuesMax = 1 << 26;

// Fields by their place in the format's schema.
namespace model {
enum { codes = 1, graphs = 2, buffers = 4 };
}
namespace code {
enum { narrow = 0, custom = 1, wide = 3 };
}
namespace graph {
enum { tensors = 0, inputs = 1, outputs = 2, steps = 3 };
}
namespace tensor {
enum { shape = 0, type = 1, buffer = 2, quantization = 4, sparsity = 6 };
}
namespace quantization {
enum { scale = 2, zero = 3, details = 4, axis = 6 };
}
namespace step {
enum { code = 0, inputs = 1, outputs = 2, options = 4, custom_options = 5 };
}
namespace buffer {
enum { data = 0 };
}

struct Code {
  Op op = {};
  std::string custom = {};
};

Error damaged(std::string_view what) { return model_failure(fmt::format("it is damaged: {}", what)); }

// 0: of a type that this folder does not use.
size_t bytes_of(TensorType type) {
  switch (type) {
    case TensorType::float32:
    case TensorType::int32: return 4;
    case TensorType::uint8:
    case TensorType::int8: return 1;
  }
  return 0;
}

bool sound_scale(float scale) { return std::isfinite(scale) && scale > 0; }

Result<Tensor> read_tensor(const Table& from, const std::vector<Table>& buffers) {
  Tensor made;
  made.shape = from.numbers<std::int32_t>(tensor::shape, kRankMax);
  std::int64_t values = 1;
  for (std::int32_t side : made.shape) {
    if (side < 1 || side > kSideMax || (values *= side) > kValuesMax)
      return model_failure("it has a tensor without size");
  }
  made.type = static_cast<TensorType>(from.number<std::int8_t>(tensor::type));
  auto which = from.number<std::uint32_t>(tensor::buffer);
  if (which >= buffers.size()) return damaged("a tensor's values are missing");
  if (bytes_of(made.type) > 0) made.constant = buffers[which].bytes(buffer::data);
  if (!made.constant.empty() && made.constant.size() != made.count() * bytes_of(made.type))
    return damaged("a tensor has more or fewer values than its shape says");
  if (from.has(tensor::sparsity)) return model_failure("it has sparse tensors");
  Table quantized = from.table(tensor::quantization);
  made.scales = quantized.numbers<float>(quantization::scale, kChannelsMax);
  made.zeros = quantized.numbers<std::int64_t>(quantization::zero, kChannelsMax);
  made.channel_axis = quantized.number<std::int32_t>(quantization::axis);
  if (!std::ranges::all_of(made.scales, sound_scale)) return damaged("a tensor's scale is no positive number");
  return made;
}

Result<Step> read_step(const Table& from, const std::vector<Code>& codes) {
  auto which = from.number<std::uint32_t>(step::code);
  if (which >= codes.size()) return damaged("an operator has no name");
  return Step{.op = codes[which].op,
              .custom = codes[which].custom,
              .inputs = from.numbers<std::int32_t>(step::inputs, kListMax),
              .outputs = from.numbers<std::int32_t>(step::outputs, kListMax),
              .options = from.table(step::options),
              .custom_options = from.bytes(step::custom_options)};
}

bool good_indices(const std::vector<std::int32_t>& indices, size_t count, std::int32_t least) {
  return std::ranges::all_of(indices, [&](std::int32_t i) { return i >= least && i < std::int64_t(count); });
}

std::vector<Code> read_codes(const Table& root) {
  std::vector<Code> codes;
  for (const Table& from : root.tables(model::codes, kCodesMax)) {
    // Operators above 127 came when the first field was full.
    std::int32_t number =
        std::max<std::int32_t>(from.number<std::int8_t>(code::narrow), from.number<std::int32_t>(code::wide));
    codes.push_back({static_cast<Op>(number), std::string(from.bytes(code::custom).substr(0, 100))});
  }
  return codes;
}

}  // namespace

size_t Tensor::count() const {
  size_t values = 1;
  for (std::int32_t side : shape) values *= static_cast<size_t>(side);
  return values;
}

Result<TfliteGraph> read_tflite(std::string_view file, Damage& damage) {
  Table root = Table::root(file, "TFL3", damage);
  std::vector<Code> codes = read_codes(root);
  std::vector<Table> graphs = root.tables(model::graphs, kListMax), buffers = root.tables(model::buffers, kTensorsMax);
  if (damage.found) return damaged("it is not a TensorFlow Lite model, or not a whole one");
  if (graphs.size() != 1) return model_failure("it does not consist of one graph");
  TfliteGraph made;
  made.inputs = graphs[0].numbers<std::int32_t>(graph::inputs, kListMax);
  made.outputs = graphs[0].numbers<std::int32_t>(graph::outputs, kListMax);
  for (const Table& from : graphs[0].tables(graph::tensors, kTensorsMax)) {
    TRY(tensor, read_tensor(from, buffers));
    made.tensors.push_back(std::move(tensor));
  }
  size_t count = made.tensors.size();
  for (const Table& from : graphs[0].tables(graph::steps, kStepsMax)) {
    TRY(step, read_step(from, codes));
    if (!good_indices(step.inputs, count, -1) || !good_indices(step.outputs, count, 0))
      return damaged("an operator uses a tensor that is not there");
    made.steps.push_back(std::move(step));
  }
  if (!good_indices(made.inputs, count, 0) || !good_indices(made.outputs, count, 0) || damage.found)
    return damaged("not all of it is there");
  return made;
}

}  // namespace weir::onnx
