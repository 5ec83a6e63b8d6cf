#include "translate.hpp"

#include "exact_sum.hpp"
#include "onnx_writer.hpp"
#include "tflite_file.hpp"

#include "weir/ports/model_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

namespace weir::onnx {

namespace {

constexpr std::int64_t kSideMax = 4096;            // of the picture
constexpr std::int64_t kActivationsMax = 1 << 28;  // bytes of all steps together
constexpr double kProductsMax = 1e11;              // of all convolutions together: some seconds
constexpr int kBoxesMax = 1000;
constexpr const char* kPicture = "picture";

// Options by their place in the format's schema.
namespace conv {
enum { padding = 0, stride_w = 1, stride_h = 2, activation = 3, dilation_w = 4, dilation_h = 5 };
}
namespace depthwise {
enum { activation = 4, dilation_w = 5, dilation_h = 6 };
}
namespace pool {
enum { padding = 0, stride_w = 1, stride_h = 2, width = 3, height = 4, activation = 5 };
}
namespace add {
enum { activation = 0 };
}
namespace concatenation {
enum { axis = 0, activation = 1 };
}
namespace resize {
enum { align_corners = 0, half_pixel_centers = 1 };
}
enum Activation { kNone = 0, kRelu = 1, kRelu6 = 3 };

Error unknown(std::string what) { return model_failure(fmt::format("nobody translates {}", what)); }

// How an activation's bytes are meant. ONNX's are 128 above the file's.
struct Scale {
  float scale = 1;
  int zero = 0;  // in the file, from -128 to 127
  friend bool operator==(const Scale&, const Scale&) = default;
};

// Numbers of the file that are not computed by the runtime, but looked up: of which tensor, and what its bytes mean.
struct View {
  std::int32_t tensor = 0;
  std::array<float, 256> meaning = {};  // by ONNX's byte
};

// Kernel, stride and padding along height and width.
struct Window {
  std::array<std::int32_t, 2> kernel = {}, stride = {}, before = {}, after = {};
};

struct Node {
  std::string_view op;
  std::vector<std::string> inputs;
  std::vector<Attribute> attributes = {};
  bool own = false;
};

class Translator {
 public:
  explicit Translator(const TfliteGraph& graph) : graph_(graph), ready_(graph.tensors.size()) {}
  Status run();
  Translation finish();

 private:
  const Tensor& tensor(std::int32_t index) const { return graph_.tensors[static_cast<size_t>(index)]; }
  static std::string name(std::int32_t index) { return fmt::format("t{}", index); }
  // A tensor's sides as they stand in ONNX.
  static Dims dims(const Tensor& of);

  Status check(const Step& step, size_t inputs_min, size_t outputs = 1) const;
  Result<Scale> computed(std::int32_t index) const;
  Result<Scale> produced(std::int32_t index);
  // `depth`: how many values of each place go into a result.
  Result<Window> window(const Tensor& in, const Tensor& out, std::array<std::int32_t, 2> kernel, std::int32_t depth,
                        const Table& options);
  std::vector<std::string> with_scale(std::int32_t index, const Scale& scale);
  std::vector<std::string> weights(const Step& step, const Tensor& kernel, bool depthwise_conv);
  Status compute(const Node& node, std::int32_t out, const Scale& scale, int activation);

  Status translate(const Step& step);
  Status picture(const Step& step);
  Status convolve(const Step& step);
  Status add_up(const Step& step);
  Status pool_most(const Step& step);
  Status resize_nearest(const Step& step);
  Status reshape(const Step& step);
  Status concatenate(const Step& step);
  Status view(const Step& step);
  Status detections(const Step& step);
  Result<View> viewed(std::int32_t index) const;

  const TfliteGraph& graph_;
  OnnxWriter out_;
  std::vector<bool> ready_;  // tensors that the written model computes
  std::map<std::int32_t, View> views_;
  std::int64_t activations_ = 0;
  double products_ = 0;
  bool complete_ = false;
  Translation made_;
};

Dims Translator::dims(const Tensor& of) {
  Dims sides(of.shape.begin(), of.shape.end());
  return sides.size() == 4 ? Dims{sides[0], sides[3], sides[1], sides[2]} : sides;
}

Status Translator::check(const Step& step, size_t inputs_min, size_t outputs) const {
  bool all = step.inputs.size() >= inputs_min && step.outputs.size() == outputs &&
             std::ranges::none_of(step.inputs, [](std::int32_t i) { return i < 0; });
  return all ? ok() : Status(unknown("an operator without its usual inputs and outputs"));
}

// An int8 activation with one scale.
Result<Scale> scale_of(const Tensor& tensor) {
  if (tensor.type != TensorType::int8 || tensor.scales.size() != 1 || tensor.zeros.size() != 1)
    return unknown("values that are not 8-bit integers with a scale");
  if (tensor.zeros[0] < -128 || tensor.zeros[0] > 127) return unknown("a zero point that is no 8-bit integer");
  return Scale{tensor.scales[0], static_cast<int>(tensor.zeros[0])};
}

Result<Scale> Translator::computed(std::int32_t index) const {
  if (!ready_[static_cast<size_t>(index)]) return unknown("an operator on values that were not computed before");
  return scale_of(tensor(index));
}

Result<Scale> Translator::produced(std::int32_t index) {
  const Tensor& made = tensor(index);
  if (made.shape.empty() || made.shape[0] != 1 || !made.constant.empty() || ready_[static_cast<size_t>(index)])
    return unknown("a result without a shape, of several pictures, or computed twice");
  if ((activations_ += static_cast<std::int64_t>(made.count())) > kActivationsMax) return unknown("a model so large");
  ready_[static_cast<size_t>(index)] = true;
  return scale_of(made);
}

std::uint8_t byte(int value) { return static_cast<std::uint8_t>(std::clamp(value, -128, 127) + 128); }

// Scale and zero point as constants.
std::vector<std::string> Translator::with_scale(std::int32_t index, const Scale& scale) {
  return {out_.constant(fmt::format("s{}", index), scale.scale),
          out_.constant(fmt::format("z{}", index), byte(scale.zero))};
}

// What an activation cuts off is nearly always what the bytes could not say anyway; where not, it is cut off here.
Status Translator::compute(const Node& node, std::int32_t out, const Scale& scale, int activation) {
  if (activation != kNone && activation != kRelu && activation != kRelu6)
    return unknown(fmt::format("activation {}", activation));
  auto byte_of = [&](float value) {
    return byte(static_cast<int>(std::clamp(std::round(value / scale.scale), -1000.F, 1000.F)) + scale.zero);
  };
  std::uint8_t low = activation == kNone ? 0 : byte_of(0), high = activation == kRelu6 ? byte_of(6) : 255;
  bool cut = low > 0 || high < 255;
  std::string whole = cut ? fmt::format("whole{}", out) : name(out);
  out_.node(node.op, node.inputs, whole, node.attributes, node.own);
  auto limit = [&](std::uint8_t value) { return out_.constant(fmt::format("byte{}", value), value); };
  if (cut) out_.node("Clip", {whole, limit(low), limit(high)}, name(out));
  return ok();
}

// The format says only whether the result is as large as the input ("same", rounded up) or what fits ("valid"), and
// means, in the former case, zeros on both sides, the odd one behind.
Result<Window> Translator::window(const Tensor& in, const Tensor& out, std::array<std::int32_t, 2> kernel,
                                  std::int32_t depth, const Table& options) {
  Window made{.kernel = kernel,
              .stride = {options.number<std::int32_t>(conv::stride_h), options.number<std::int32_t>(conv::stride_w)}};
  bool same = options.number<std::int8_t>(conv::padding) == 0;
  for (size_t i = 0; i < 2; ++i) {
    std::int32_t from = in.shape[1 + i], to = out.shape[1 + i], stride = made.stride[i];
    if (stride < 1 || stride > 64 || kernel[i] < 1 || kernel[i] > 64) return unknown("a stride or kernel so odd");
    std::int32_t due = same ? (from + stride - 1) / stride : from < kernel[i] ? 0 : (from - kernel[i]) / stride + 1;
    if (to != due) return unknown("a result of another size than its operator makes");
    std::int32_t total = same ? std::max(0, (to - 1) * stride + kernel[i] - from) : 0;
    made.before[i] = total / 2, made.after[i] = total - total / 2;
  }
  products_ += static_cast<double>(out.count()) * kernel[0] * kernel[1] * depth;
  if (products_ > kProductsMax) return unknown("a model that takes so long");
  return made;
}

std::vector<Attribute> attributes(const Window& window) {
  auto pair = [](const std::array<std::int32_t, 2>& of) { return Dims{of[0], of[1]}; };
  return {{"kernel_shape", pair(window.kernel)},
          {"strides", pair(window.stride)},
          {"pads", Dims{window.before[0], window.before[1], window.after[0], window.after[1]}}};
}

// The only input must be a picture of bytes that the model takes for the same bytes.
Status Translator::picture(const Step& step) {
  TRY(checked, check(step, 1));
  const Tensor &in = tensor(step.inputs[0]), &out = tensor(step.outputs[0]);
  bool fits = graph_.inputs == std::vector{step.inputs[0]} && in.type == TensorType::uint8 && in.shape.size() == 4 &&
              in.shape[0] == 1 && in.shape[1] <= kSideMax && in.shape[2] <= kSideMax && in.shape[3] == 3 &&
              in.shape == out.shape && in.scales == out.scales && in.zeros.size() == 1 && in.constant.empty();
  TRY(scale, produced(step.outputs[0]));
  if (!fits || in.zeros[0] != scale.zero + 128) return unknown("a quantisation other than that of an RGB picture");
  made_.height = in.shape[1], made_.width = in.shape[2];
  out_.input(kPicture, {1, in.shape[1], in.shape[2], 3});
  out_.node("Transpose", {kPicture}, name(step.outputs[0]), {{"perm", Dims{0, 3, 1, 2}}});
  return ok();
}

// Weights come as [out,height,width,in], for a depthwise convolution as [1,height,width,out]; ONNX wants
// [out,in,height,width], of which a depthwise one has one `in` each.
std::vector<std::string> Translator::weights(const Step& step, const Tensor& kernel, bool depthwise_conv) {
  size_t outs = static_cast<size_t>(kernel.shape[depthwise_conv ? 3 : 0]);
  size_t ins = depthwise_conv ? 1 : static_cast<size_t>(kernel.shape[3]);
  size_t area = static_cast<size_t>(kernel.shape[1]) * static_cast<size_t>(kernel.shape[2]);
  std::vector<std::int8_t> turned(kernel.count());
  for (size_t o = 0; o < outs; ++o)
    for (size_t i = 0; i < ins; ++i)
      for (size_t p = 0; p < area; ++p)
        turned[(o * ins + i) * area + p] =
            static_cast<std::int8_t>(kernel.constant[depthwise_conv ? p * outs + o : (o * area + p) * ins + i]);
  std::vector<float> scales = kernel.scales;
  scales.resize(outs, scales[0]);
  Dims each = {static_cast<std::int64_t>(outs)};
  Dims all = {each[0], static_cast<std::int64_t>(ins), kernel.shape[1], kernel.shape[2]};
  std::string number = fmt::to_string(step.outputs[0]);
  return {out_.constant("w" + number, std::span<const std::int8_t>(turned), all),
          out_.constant("ws" + number, std::span<const float>(scales), each),
          out_.constant("wz" + number, std::span<const std::int8_t>(std::vector<std::int8_t>(outs)), each)};
}

Status Translator::convolve(const Step& step) {
  TRY(checked, check(step, 3));
  bool deep = step.op == Op::depthwise_conv;
  std::int32_t in_at = step.inputs[0], out_at = step.outputs[0];
  const Tensor &in = tensor(in_at), &kernel = tensor(step.inputs[1]), &bias = tensor(step.inputs[2]);
  const Tensor& out = tensor(out_at);
  TRY(from, computed(in_at));
  TRY(to, produced(out_at));
  if (in.shape.size() != 4 || out.shape.size() != 4 || kernel.shape.size() != 4 || kernel.constant.empty())
    return unknown("a convolution of other than pictures");
  std::int32_t ins = in.shape[3], outs = out.shape[3];
  bool shaped = deep ? kernel.shape[0] == 1 && kernel.shape[3] == outs && outs % ins == 0
                     : kernel.shape[0] == outs && kernel.shape[3] == ins;
  bool scaled = kernel.type == TensorType::int8 && kernel.scales.size() == kernel.zeros.size() &&
                (kernel.scales.size() == 1 ||
                 (kernel.scales.size() == static_cast<size_t>(outs) && kernel.channel_axis == (deep ? 3 : 0))) &&
                std::ranges::all_of(kernel.zeros, [](std::int64_t zero) { return zero == 0; });
  bool biased = bias.type == TensorType::int32 && bias.constant.size() == 4 * static_cast<size_t>(outs);
  const Table& options = step.options;
  bool plain = options.number<std::int32_t>(deep ? int{depthwise::dilation_w} : int{conv::dilation_w}, 1) == 1 &&
               options.number<std::int32_t>(deep ? int{depthwise::dilation_h} : int{conv::dilation_h}, 1) == 1;
  if (!shaped || !scaled || !biased || !plain) return unknown("a convolution with weights of such a kind");
  TRY(sizes, window(in, out, {kernel.shape[1], kernel.shape[2]}, deep ? 1 : ins, options));
  int activation = options.number<std::int8_t>(deep ? int{depthwise::activation} : int{conv::activation});

  std::vector<std::string> inputs = {name(in_at)};
  for (auto&& more : {with_scale(in_at, from), weights(step, kernel, deep), with_scale(out_at, to)})
    inputs.insert(inputs.end(), more.begin(), more.end());
  std::vector<std::int32_t> biases(static_cast<size_t>(outs));
  std::memcpy(biases.data(), bias.constant.data(), bias.constant.size());
  inputs.push_back(out_.constant(fmt::format("b{}", out_at), std::span<const std::int32_t>(biases), {outs}));
  std::vector<Attribute> with = attributes(sizes);
  with.push_back({"group", std::int64_t{deep ? ins : 1}});
  return compute({"QLinearConv", inputs, with}, out_at, to, activation);
}

Status Translator::add_up(const Step& step) {
  TRY(checked, check(step, 2));
  std::int32_t a = step.inputs[0], b = step.inputs[1], out = step.outputs[0];
  TRY(scale_a, computed(a));
  TRY(scale_b, computed(b));
  TRY(to, produced(out));
  if (tensor(a).shape != tensor(out).shape || tensor(b).shape != tensor(out).shape)
    return unknown("a sum of values of different shapes");
  SumZeros zeros{byte(scale_a.zero), byte(scale_b.zero), byte(to.zero)};
  SumFactors factors = exact_factors({scale_a.scale / to.scale, scale_b.scale / to.scale}, zeros);
  auto zero = [&](std::uint8_t value) { return out_.constant(fmt::format("byte{}", value), value); };
  std::vector<std::string> inputs = {name(a),
                                     out_.constant(fmt::format("fa{}", out), factors.a),
                                     zero(zeros.a),
                                     name(b),
                                     out_.constant(fmt::format("fb{}", out), factors.b),
                                     zero(zeros.b),
                                     out_.constant("one", 1.F),
                                     zero(zeros.result)};
  return compute({"QLinearAdd", inputs, {}, true}, out, to, step.options.number<std::int8_t>(add::activation));
}

Status Translator::pool_most(const Step& step) {
  TRY(checked, check(step, 1));
  const Tensor &in = tensor(step.inputs[0]), &out = tensor(step.outputs[0]);
  TRY(from, computed(step.inputs[0]));
  TRY(to, produced(step.outputs[0]));
  if (in.shape.size() != 4 || out.shape.size() != 4 || in.shape[3] != out.shape[3] || from != to)
    return unknown("a pooling that changes scales or channels");
  TRY(sizes,
      window(in, out, {step.options.number<std::int32_t>(pool::height), step.options.number<std::int32_t>(pool::width)},
             1, step.options));
  return compute({"MaxPool", {name(step.inputs[0])}, attributes(sizes)}, step.outputs[0], to,
                 step.options.number<std::int8_t>(pool::activation));
}

Status Translator::resize_nearest(const Step& step) {
  TRY(checked, check(step, 1));
  const Tensor &in = tensor(step.inputs[0]), &out = tensor(step.outputs[0]);
  TRY(from, computed(step.inputs[0]));
  TRY(to, produced(step.outputs[0]));
  bool plain = step.options.number<std::int8_t>(resize::align_corners) == 0 &&
               step.options.number<std::int8_t>(resize::half_pixel_centers) == 0;
  if (!plain || in.shape.size() != 4 || out.shape.size() != 4 || in.shape[3] != out.shape[3] || from != to)
    return unknown("a resizing of such a kind");
  Dims sides = dims(out);
  std::string size = out_.constant(fmt::format("size{}", fmt::join(sides, "x")), std::span<const std::int64_t>(sides),
                                   {std::int64_t{4}});
  out_.node("Resize", {name(step.inputs[0]), "", "", size}, name(step.outputs[0]),
            {{"mode", "nearest"}, {"coordinate_transformation_mode", "asymmetric"}, {"nearest_mode", "floor"}});
  return ok();
}

Status Translator::reshape(const Step& step) {
  TRY(checked, check(step, 1));
  const Tensor &in = tensor(step.inputs[0]), &out = tensor(step.outputs[0]);
  TRY(from, computed(step.inputs[0]));
  TRY(to, produced(step.outputs[0]));
  if (out.shape.size() == 4 || in.count() != out.count() || from != to)
    return unknown("a change of shape of such a kind");
  std::string flat = name(step.inputs[0]);
  if (in.shape.size() == 4) {
    flat = fmt::format("last{}", step.outputs[0]);
    out_.node("Transpose", {name(step.inputs[0])}, flat, {{"perm", Dims{0, 2, 3, 1}}});
  }
  Dims sides = dims(out);
  std::string size = out_.constant(fmt::format("shape{}", fmt::join(sides, "x")), std::span<const std::int64_t>(sides),
                                   {static_cast<std::int64_t>(sides.size())});
  out_.node("Reshape", {flat, size}, name(step.outputs[0]));
  return ok();
}

Status Translator::concatenate(const Step& step) {
  TRY(checked, check(step, 1));
  const Tensor& out = tensor(step.outputs[0]);
  TRY(to, produced(step.outputs[0]));
  std::int64_t axis = step.options.number<std::int32_t>(concatenation::axis), total = 0;
  auto rank = static_cast<std::int64_t>(out.shape.size());
  if (axis < 0) axis += rank;
  if (rank == 4 || axis < 0 || axis >= rank || step.options.number<std::int8_t>(concatenation::activation) != kNone)
    return unknown("a concatenation of such a kind");
  std::vector<std::string> inputs;
  for (std::int32_t in : step.inputs) {
    TRY(from, computed(in));
    std::vector<std::int32_t> sides = tensor(in).shape;
    if (sides.size() != out.shape.size() || from != to) return unknown("a concatenation of unlike values");
    total += std::exchange(sides[static_cast<size_t>(axis)], out.shape[static_cast<size_t>(axis)]);
    if (sides != out.shape) return unknown("a concatenation of values that do not fit");
    inputs.push_back(name(in));
  }
  if (total != out.shape[static_cast<size_t>(axis)]) return unknown("a concatenation of another size than its parts");
  out_.node("Concat", inputs, name(step.outputs[0]), {{"axis", axis}});
  return ok();
}

// What is only looked up needs no runtime: real numbers in place of bytes, and the logistic function before them.
Result<View> Translator::viewed(std::int32_t index) const {
  if (auto found = views_.find(index); found != views_.end()) return found->second;
  TRY(scale, computed(index));
  View plain{.tensor = index};
  for (int i = 0; i < 256; ++i)
    plain.meaning[static_cast<size_t>(i)] = scale.scale * static_cast<float>(i - 128 - scale.zero);
  return plain;
}

Status Translator::view(const Step& step) {
  TRY(checked, check(step, 1));
  std::int32_t out_at = step.outputs[0];
  const Tensor& out = tensor(out_at);
  TRY(seen, viewed(step.inputs[0]));
  if (out.shape != tensor(step.inputs[0]).shape || ready_[static_cast<size_t>(out_at)] || views_.contains(out_at))
    return unknown("a function of values of another shape");
  if (step.op == Op::logistic)
    for (float& each : seen.meaning) each = 1 / (1 + std::exp(-each));
  if (out.type == TensorType::int8) {
    TRY(to, scale_of(out));
    for (float& each : seen.meaning) {
      float rounded = std::clamp(std::nearbyint(each / to.scale) + static_cast<float>(to.zero), -128.F, 127.F);
      each = to.scale * (rounded - static_cast<float>(to.zero));
    }
  } else if (out.type != TensorType::float32) {
    return unknown("a function with such a result");
  }
  views_[out_at] = seen;
  return ok();
}

Status Translator::detections(const Step& step) {
  if (step.custom != "TFLite_Detection_PostProcess") return unknown(fmt::format("the operator \"{}\"", step.custom));
  TRY(checked, check(step, 3, 4));
  TRY(offsets, viewed(step.inputs[0]));
  TRY(scores, viewed(step.inputs[1]));
  const Tensor& anchors = tensor(step.inputs[2]);
  std::vector<std::int32_t> boxes_shape = tensor(offsets.tensor).shape, scores_shape = tensor(scores.tensor).shape;
  bool shaped = boxes_shape.size() == 3 && scores_shape.size() == 3 && boxes_shape[1] == scores_shape[1] &&
                boxes_shape[2] == 4 && anchors.shape == std::vector{boxes_shape[1], 4} &&
                anchors.type == TensorType::float32 && !anchors.constant.empty();
  if (!shaped || complete_) return unknown("detections from values of other shapes");

  std::map<std::string, double> options = read_number_map(step.custom_options);
  SsdHead& head = made_.head;
  head.columns = scores_shape[2];
  double classes = options["num_classes"];
  bool labelled = classes >= 1 && classes <= head.columns && classes >= head.columns - 1;
  bool simple = options["use_regular_nms"] == 0 && options["max_classes_per_detection"] == 1;
  bool bounded = options["max_detections"] >= 1 && options["max_detections"] <= kBoxesMax;
  if (!labelled || !simple || !bounded) return unknown("this way of merging detections");
  head.background = head.columns - static_cast<int>(classes);
  head.boxes_max = static_cast<int>(options["max_detections"]);
  head.iou_max = static_cast<float>(options["nms_iou_threshold"]);
  head.min_score = static_cast<float>(options["nms_score_threshold"]);
  head.scale = {static_cast<float>(options["y_scale"]), static_cast<float>(options["x_scale"]),
                static_cast<float>(options["h_scale"]), static_cast<float>(options["w_scale"])};
  bool sound = head.iou_max > 0 && head.iou_max <= 1 && !std::isnan(head.min_score) && head.scale.y > 0 &&
               head.scale.x > 0 && head.scale.height > 0 && head.scale.width > 0;
  if (!sound || !std::ranges::is_sorted(scores.meaning)) return unknown("such settings for merging detections");
  head.anchors.resize(static_cast<size_t>(boxes_shape[1]));
  std::memcpy(head.anchors.data(), anchors.constant.data(), anchors.constant.size());
  head.score_of = scores.meaning, head.offset_of = offsets.meaning;
  made_.offsets = name(offsets.tensor), made_.scores = name(scores.tensor);
  out_.output(made_.offsets, dims(tensor(offsets.tensor)));
  out_.output(made_.scores, dims(tensor(scores.tensor)));
  complete_ = true;
  return ok();
}

Status Translator::translate(const Step& step) {
  switch (step.op) {
    case Op::quantize: return picture(step);
    case Op::conv:
    case Op::depthwise_conv: return convolve(step);
    case Op::add: return add_up(step);
    case Op::max_pool: return pool_most(step);
    case Op::resize_nearest: return resize_nearest(step);
    case Op::reshape: return reshape(step);
    case Op::concatenation: return concatenate(step);
    case Op::dequantize:
    case Op::logistic: return view(step);
    case Op::custom: return detections(step);
  }
  return unknown(fmt::format("operator {}", static_cast<int>(step.op)));
}

Status Translator::run() {
  for (const Step& step : graph_.steps) {
    TRY(translated, translate(step));
  }
  return complete_ ? ok() : Status(unknown("a model that reports no detections"));
}

Translation Translator::finish() {
  made_.onnx = out_.finish();
  return std::move(made_);
}

}  // namespace

Result<Translation> translate(std::string_view tflite) {
  Damage damage;
  TRY(graph, read_tflite(tflite, damage));
  Translator translator(graph);
  TRY(ran, translator.run());
  if (damage.found) return model_failure("it is damaged: an operator's options are not all there");
  return translator.finish();
}

}  // namespace weir::onnx
