#include "weir/onnx/detector.hpp"

#if __has_include(<onnxruntime_c_api.h>)

#include "session.hpp"
#include "yolo.hpp"

#include "weir/base/plain_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weir::onnx {

namespace {

constexpr std::int64_t kOpenSide = 640;  // of an input whose size the model leaves open
constexpr std::int64_t kSideMax = 4096;
constexpr size_t kBatchMax = 4;
constexpr double kIouMax = 0.45;

struct Shape {
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::vector<std::int64_t> dims = {};  // -1: open
};

class OnnxDetector final : public Detector {
 public:
  explicit OnnxDetector(const Runtime& runtime)
      : runtime_(runtime), api_(runtime.api()), session_(api_.ReleaseSession), memory_(api_.ReleaseMemoryInfo) {}

  Status open(const std::string& bytes, int threads, const std::string& labels_file);
  size_t batch_max() const override { return batch_max_; }
  Result<std::vector<std::vector<Detection>>> detect(std::span<const Look> looks) override;

 private:
  using Visit = std::function<Status(std::span<const float> values, std::span<const std::int64_t> shape)>;

  Result<Shape> shape_of(const OrtTensorTypeAndShapeInfo* info) const;
  Result<Shape> input_shape() const;
  Status check_input(int threads);
  Status learn_layout();
  Status read_labels_of(const std::string& labels_file);
  Result<std::string> metadata(const char* key) const;
  // Runs the pictures in `planes_` and shows the first output.
  Status run(size_t batch, const Visit& visit);
  Status run_looks(std::span<const Look> looks, std::vector<std::vector<Detection>>& found);
  std::vector<Detection> place(std::span<const float> output, const Fit& fit, const Look& look) const;

  const Runtime& runtime_;
  const OrtApi& api_;
  Handle<OrtSession> session_;
  Handle<OrtMemoryInfo> memory_;
  std::string input_name_, output_name_;
  size_t batch_max_ = 1;
  Layout layout_;
  std::vector<std::string> labels_;
  std::vector<std::uint8_t> rgb_;
  std::vector<float> planes_;
};

Result<Shape> OnnxDetector::shape_of(const OrtTensorTypeAndShapeInfo* info) const {
  Shape shape;
  size_t count = 0;
  TRY(typed, runtime_.check(api_.GetTensorElementType(info, &shape.type)));
  TRY(counted, runtime_.check(api_.GetDimensionsCount(info, &count)));
  shape.dims.resize(count);
  TRY(filled, runtime_.check(api_.GetDimensions(info, shape.dims.data(), count)));
  return shape;
}

Result<Shape> OnnxDetector::input_shape() const {
  Handle<OrtTypeInfo> type(api_.ReleaseTypeInfo);
  TRY(found, runtime_.check(api_.SessionGetInputTypeInfo(session_.get(), 0, type.out())));
  const OrtTensorTypeAndShapeInfo* info = nullptr;  // belongs to `type`
  TRY(cast, runtime_.check(api_.CastTypeInfoToTensorInfo(type.get(), &info)));
  if (info == nullptr) return model_failure("its input is not a tensor");
  return shape_of(info);
}

Status OnnxDetector::check_input(int threads) {
  size_t inputs = 0, outputs = 0;
  TRY(in, runtime_.check(api_.SessionGetInputCount(session_.get(), &inputs)));
  TRY(out, runtime_.check(api_.SessionGetOutputCount(session_.get(), &outputs)));
  if (inputs != 1 || outputs == 0) return model_failure(fmt::format("it takes {} inputs, not one picture", inputs));
  OrtAllocator* allocator = nullptr;
  TRY(allocators, runtime_.check(api_.GetAllocatorWithDefaultOptions(&allocator)));
  auto take = [&](char* name) {
    std::string copy = name;
    allocator->Free(allocator, name);
    return copy;
  };
  char* name = nullptr;
  TRY(first, runtime_.check(api_.SessionGetInputName(session_.get(), 0, allocator, &name)));
  input_name_ = take(name);
  TRY(last, runtime_.check(api_.SessionGetOutputName(session_.get(), 0, allocator, &name)));
  output_name_ = take(name);

  TRY(shape, input_shape());
  if (shape.type != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT)
    return model_failure("its input is not of 32-bit floats: export it without half precision or quantised input");
  auto side = [](std::int64_t dim) { return dim < 0 ? kOpenSide : dim; };
  bool picture = shape.dims.size() == 4 && (shape.dims[0] == 1 || shape.dims[0] < 0) && side(shape.dims[1]) > 0 &&
                 (shape.dims[1] == 3 || shape.dims[1] < 0) && side(shape.dims[2]) > 0 && side(shape.dims[3]) > 0 &&
                 side(shape.dims[2]) <= kSideMax && side(shape.dims[3]) <= kSideMax;
  if (!picture) return model_failure(fmt::format("its input {} is not one RGB picture", shape.dims));
  if (shape.dims[0] < 0 && threads > 1) batch_max_ = kBatchMax;  // one thread gains nothing from a batch
  layout_.height = static_cast<int>(side(shape.dims[2])), layout_.width = static_cast<int>(side(shape.dims[3]));
  return ok();
}

Status OnnxDetector::run(size_t batch, const Visit& visit) {
  std::int64_t dims[] = {static_cast<std::int64_t>(batch), 3, layout_.height, layout_.width};
  Handle<OrtValue> input(api_.ReleaseValue), output(api_.ReleaseValue);
  TRY(wrapped,
      runtime_.check(api_.CreateTensorWithDataAsOrtValue(memory_.get(), planes_.data(), planes_.size() * sizeof(float),
                                                         dims, 4, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, input.out())));
  const char *in = input_name_.c_str(), *out = output_name_.c_str();
  const OrtValue* inputs[] = {input.get()};
  TRY(ran, runtime_.check(api_.Run(session_.get(), nullptr, &in, inputs, 1, &out, 1, output.out())));
  int tensor = 0;
  TRY(asked, runtime_.check(api_.IsTensor(output.get(), &tensor)));
  if (tensor == 0) return model_failure("its output is not a tensor");
  Handle<OrtTensorTypeAndShapeInfo> info(api_.ReleaseTensorTypeAndShapeInfo);
  TRY(typed, runtime_.check(api_.GetTensorTypeAndShape(output.get(), info.out())));
  TRY(shape, shape_of(info.get()));
  size_t count = 0;
  TRY(counted, runtime_.check(api_.GetTensorShapeElementCount(info.get(), &count)));
  void* values = nullptr;
  TRY(got, runtime_.check(api_.GetTensorMutableData(output.get(), &values)));
  if (shape.type != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT || values == nullptr)
    return model_failure("its output is not of 32-bit floats");
  return visit({static_cast<const float*>(values), count}, shape.dims);
}

// An output's shape is often known only once the model ran.
Status OnnxDetector::learn_layout() {
  planes_.assign(3 * static_cast<size_t>(layout_.width) * static_cast<size_t>(layout_.height), 0);
  return run(1, [&](std::span<const float>, std::span<const std::int64_t> shape) -> Status {
    auto layout =
        shape.size() == 3 && shape[0] == 1 ? recognise(layout_.width, layout_.height, shape.subspan(1)) : std::nullopt;
    if (!layout) {
      std::vector<std::int64_t> dims(shape.begin(), shape.end());
      return model_failure(fmt::format("its output {} for a picture of {}x{} is no known YOLO layout", dims,
                                       layout_.width, layout_.height));
    }
    layout_ = *layout;
    return ok();
  });
}

Result<std::string> OnnxDetector::metadata(const char* key) const {
  Handle<OrtModelMetadata> all(api_.ReleaseModelMetadata);
  TRY(found, runtime_.check(api_.SessionGetModelMetadata(session_.get(), all.out())));
  OrtAllocator* allocator = nullptr;
  TRY(allocators, runtime_.check(api_.GetAllocatorWithDefaultOptions(&allocator)));
  char* value = nullptr;
  TRY(looked, runtime_.check(api_.ModelMetadataLookupCustomMetadataMap(all.get(), allocator, key, &value)));
  std::string text = value != nullptr ? value : "";
  if (value != nullptr) allocator->Free(allocator, value);
  return text;
}

Status OnnxDetector::read_labels_of(const std::string& labels_file) {
  if (!labels_file.empty()) {
    TRY(text, for_model(read_plain_file(labels_file, kLabelsBytesMax)));
    labels_ = split_labels(text);
  } else {
    TRY(names, metadata("names"));
    labels_ = parse_names(names);
    if (labels_.empty() && layout_.classes == static_cast<int>(coco_names().size())) labels_ = coco_names();
  }
  if (labels_.empty()) return model_failure("it carries no names: give a file with a label for each class");
  if (labels_.size() != static_cast<size_t>(layout_.classes))
    return model_failure(
        fmt::format("its output has {} classes, but there are {} labels: it is of another task, or "
                    "the labels are of another model",
                    layout_.classes, labels_.size()));
  return ok();
}

Status OnnxDetector::open(const std::string& bytes, int threads, const std::string& labels_file) {
  TRY(created, open_session(runtime_, bytes, {.threads = threads}, session_));
  TRY(placed, runtime_.check(api_.CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, memory_.out())));
  TRY(input, check_input(threads));
  TRY(layout, learn_layout());
  return read_labels_of(labels_file);
}

std::vector<Detection> OnnxDetector::place(std::span<const float> output, const Fit& fit, const Look& look) const {
  Region region = region_of(look);
  std::vector<Detection> found;
  for (const Candidate& c : suppress(decode(layout_, output, look.min_score), kIouMax)) {
    Box box = clipped({region.x + (c.box.x1 - fit.x) / fit.scale, region.y + (c.box.y1 - fit.y) / fit.scale,
                       region.x + (c.box.x2 - fit.x) / fit.scale, region.y + (c.box.y2 - fit.y) / fit.scale},
                      region);
    if (box.x1 < box.x2 && box.y1 < box.y2)
      found.push_back({labels_[static_cast<size_t>(c.klass)], std::min(double(c.score), 1.0), box});
  }
  return found;
}

Status OnnxDetector::run_looks(std::span<const Look> looks, std::vector<std::vector<Detection>>& found) {
  size_t each = 3 * static_cast<size_t>(layout_.width) * static_cast<size_t>(layout_.height);
  planes_.resize(each * looks.size());
  std::vector<Fit> fits;
  for (size_t i = 0; i < looks.size(); ++i) {
    Region region = region_of(looks[i]);
    const Fit& placed = fits.emplace_back(fit(layout_, region));
    rgb_.resize(3 * static_cast<size_t>(placed.width) * static_cast<size_t>(placed.height));
    if (!looks[i].picture->to_rgb(region, placed.width, placed.height, rgb_))
      return stream_failure(restart::StreamErrorCode::codec_unsupported, "its pixels cannot be converted");
    fill(layout_, placed, rgb_, std::span(planes_).subspan(i * each, each));
  }
  return run(looks.size(), [&](std::span<const float> values, std::span<const std::int64_t>) -> Status {
    size_t share = values.size() / looks.size();
    for (size_t i = 0; i < looks.size(); ++i)
      found.push_back(place(values.subspan(i * share, share), fits[i], looks[i]));
    return ok();
  });
}

Result<std::vector<std::vector<Detection>>> OnnxDetector::detect(std::span<const Look> looks) {
  std::vector<std::vector<Detection>> found;
  for (size_t at = 0; at < looks.size(); at += batch_max()) {
    TRY(ran, run_looks(looks.subspan(at, std::min(batch_max(), looks.size() - at)), found));
  }
  return found;
}

}  // namespace

Result<std::unique_ptr<Detector>> make(const ModelFiles& files, int threads) {
  TRY(bytes, for_model(read_plain_file(files.model, kModelBytesMax)));
  TRY(runtime, Runtime::of(files.library));
  auto detector = std::make_unique<OnnxDetector>(*runtime);
  if (Status opened = detector->open(bytes, threads, files.labels); !opened)
    return model_failure(fmt::format("{}: {}", files.model, opened.error().message));
  return std::unique_ptr<Detector>(std::move(detector));
}

}  // namespace weir::onnx

#else

namespace weir::onnx {

Result<std::unique_ptr<Detector>> make(const ModelFiles& files, int) {
  return model_failure("this worker was built without ONNX Runtime, which " + files.model + " needs");
}

}  // namespace weir::onnx

#endif
