#include "weir/tflite/detector.hpp"

#if __has_include(<tensorflow/lite/c/c_api.h>)

#include "library.hpp"
#include "ssd.hpp"
#include "trial.hpp"

#include "weir/base/plain_file.hpp"
#include "weir/tflite/labels.hpp"

#include <fmt/format.h>

#include <cstdarg>
#include <cstdio>

namespace weir::tflite {

namespace {

using namespace std::chrono_literals;

// A model ready to run, and everything it stands on, in the order in which it must go.
class Session {
 public:
  explicit Session(const Api& api) : api_(api) {}
  Session(const Session&) = delete;
  ~Session() {
    if (interpreter_ != nullptr) api_.destroy(interpreter_);
    if (delegate_ != nullptr) api_.xnnpack_delete(delegate_);
    if (model_ != nullptr) api_.model_delete(model_);
  }

  // `bytes` must outlive the session. Runs the model once, so that the shapes of its outputs are known.
  Status open(const std::string& bytes, int threads);

  int width() const { return width_; }
  int height() const { return height_; }
  Result<std::vector<Detection>> detect(const Look& look, const std::vector<std::string>& labels);

 private:
  static void report(void* words, const char* format, va_list arguments) {
    char line[500];
    std::vsnprintf(line, sizeof line, format, arguments);
    *static_cast<std::string*>(words) = line;
  }
  Error failed(std::string_view what) const {
    return model_failure(words_.empty() ? std::string(what) : fmt::format("{}: {}", what, words_));
  }
  std::vector<int> shape(const TfLiteTensor* tensor) const {
    std::vector<int> dims;
    for (int i = 0; i < api_.dims(tensor); ++i) dims.push_back(api_.dim(tensor, i));
    return dims;
  }
  Status create(const std::string& bytes, int threads);
  Status check_input();
  Status check_outputs();
  Result<std::span<const float>> floats(size_t output, size_t count) const;
  bool fill_input(const Look& look, const Region& region);

  Api api_;
  std::string words_;  // what the library said last
  TfLiteModel* model_ = nullptr;
  TfLiteDelegate* delegate_ = nullptr;
  TfLiteInterpreter* interpreter_ = nullptr;
  int width_ = 0, height_ = 0;
  bool float_input_ = false;
  std::vector<std::uint8_t> rgb_;  // only for a model that takes floats
  Layout layout_;
};

Status Session::create(const std::string& bytes, int threads) {
  model_ = api_.model_create(bytes.data(), bytes.size());
  if (model_ == nullptr) return failed("it is not a TensorFlow Lite model, or damaged");
  TfLiteInterpreterOptions* options = api_.options_create();
  api_.options_threads(options, threads);
  api_.options_reporter(options, report, &words_);
  if (api_.xnnpack_create != nullptr) {
    XnnpackOptions xnnpack{threads, kSigned8 | kUnsigned8, {}};
    delegate_ = api_.xnnpack_create(&xnnpack);
    if (delegate_ != nullptr) api_.options_delegate(options, delegate_);
  }
  interpreter_ = api_.create(model_, options);
  api_.options_delete(options);
  if (interpreter_ == nullptr) return failed("its graph cannot be built");
  if (api_.allocate(interpreter_) != kTfLiteOk) return failed("its tensors cannot be laid out");
  return ok();
}

Status Session::check_input() {
  if (api_.inputs(interpreter_) != 1) return model_failure("it takes more than one input");
  const TfLiteTensor* input = api_.input(interpreter_, 0);
  std::vector<int> dims = shape(input);
  float_input_ = api_.type(input) == kTfLiteFloat32;
  bool picture = dims.size() == 4 && dims[0] == 1 && dims[1] > 0 && dims[2] > 0 && dims[3] == 3;
  if (!picture || (!float_input_ && api_.type(input) != kTfLiteUInt8))
    return model_failure(fmt::format("its input {} is not one RGB picture of 8 bits or floats", fmt::join(dims, "x")));
  height_ = dims[1], width_ = dims[2];
  size_t values = 3 * static_cast<size_t>(width_) * static_cast<size_t>(height_);
  if (api_.bytes(input) != values * (float_input_ ? sizeof(float) : 1) || api_.data(input) == nullptr)
    return model_failure("its input has no room for a picture of its own size");
  if (float_input_) rgb_.resize(values);
  return ok();
}

Status Session::check_outputs() {
  std::vector<std::vector<int>> shapes;
  for (int i = 0; i < api_.outputs(interpreter_); ++i) shapes.push_back(shape(api_.output(interpreter_, i)));
  auto layout = recognise(shapes);
  if (!layout) return model_failure(fmt::format("its outputs {} are no known detection layout", shapes));
  layout_ = *layout;
  auto slots = static_cast<size_t>(layout_.slots);
  for (auto [output, count] : {std::pair{layout_.boxes, 4 * slots},
                               {layout_.classes, slots},
                               {layout_.scores, slots},
                               {layout_.count, size_t{1}}}) {
    TRY(values, floats(output, count));
  }
  return ok();
}

Result<std::span<const float>> Session::floats(size_t output, size_t count) const {
  const TfLiteTensor* tensor = api_.output(interpreter_, static_cast<int>(output));
  const void* data = tensor != nullptr ? api_.data(tensor) : nullptr;
  if (data == nullptr || api_.type(tensor) != kTfLiteFloat32 || api_.bytes(tensor) != count * sizeof(float))
    return model_failure(fmt::format("its output {} does not hold {} floats", output, count));
  return std::span(static_cast<const float*>(data), count);
}

Status Session::open(const std::string& bytes, int threads) {
  TRY(created, create(bytes, threads));
  TRY(input, check_input());
  if (api_.invoke(interpreter_) != kTfLiteOk) return failed("it cannot be run");
  return check_outputs();
}

bool Session::fill_input(const Look& look, const Region& region) {
  TfLiteTensor* input = api_.input(interpreter_, 0);
  if (!float_input_)
    return look.picture->to_rgb(region, width_, height_,
                                {static_cast<std::uint8_t*>(api_.data(input)), api_.bytes(input)});
  if (!look.picture->to_rgb(region, width_, height_, rgb_)) return false;
  auto* values = static_cast<float*>(api_.data(input));
  for (size_t i = 0; i < rgb_.size(); ++i) values[i] = (static_cast<float>(rgb_[i]) - 127.5F) / 127.5F;
  return true;
}

Result<std::vector<Detection>> Session::detect(const Look& look, const std::vector<std::string>& labels) {
  Region region = region_of(look);
  if (!fill_input(look, region))
    return stream_failure(restart::StreamErrorCode::codec_unsupported, "its pixels cannot be converted");
  if (api_.invoke(interpreter_) != kTfLiteOk) return failed("the model failed");
  auto slots = static_cast<size_t>(layout_.slots);
  TRY(boxes, floats(layout_.boxes, 4 * slots));
  TRY(classes, floats(layout_.classes, slots));
  TRY(scores, floats(layout_.scores, slots));
  TRY(count, floats(layout_.count, 1));
  return read_outputs({boxes, classes, scores, count[0]}, labels, region, look.min_score);
}

class TfliteDetector final : public Detector {
 public:
  TfliteDetector(const Api& api, std::string bytes, std::vector<std::string> labels)
      : bytes_(std::move(bytes)), labels_(std::move(labels)), session_(api) {}
  Status open(int threads) { return session_.open(bytes_, threads); }

  Result<std::vector<std::vector<Detection>>> detect(std::span<const Look> looks) override {
    std::vector<std::vector<Detection>> all;
    for (const Look& look : looks) {
      TRY(found, session_.detect(look, labels_));
      all.push_back(std::move(found));
    }
    return all;
  }

 private:
  std::string bytes_;
  std::vector<std::string> labels_;
  Session session_;
};

}  // namespace

Result<std::unique_ptr<Detector>> make(const ModelFiles& files, int threads) {
  TRY(bytes, for_model(read_plain_file(files.model, kModelBytesMax)));
  TRY(labels, labels_of(files, bytes));
  TRY(api, load_api(files.library));
  auto detector = std::make_unique<TfliteDetector>(api, std::move(bytes), std::move(labels));
  auto open = [&]() -> Status {
    Status opened = detector->open(threads);
    return opened ? ok() : Status(model_failure(fmt::format("{}: {}", files.model, opened.error().message)));
  };
  // The library checks much of a model, but not all: of a few thousand damaged ones two made it crash.
  TRY(tried, try_in_child(files.model, 30s, open));
  TRY(opened, open());
  return std::unique_ptr<Detector>(std::move(detector));
}

}  // namespace weir::tflite

#else

namespace weir::tflite {

Result<std::unique_ptr<Detector>> make(const ModelFiles& files, int) {
  return model_failure("this worker was built without TensorFlow Lite, which " + files.model + " needs");
}

}  // namespace weir::tflite

#endif
