#include "weir/onnx/translated.hpp"

#include "weir/ports/model_files.hpp"

#if __has_include(<onnxruntime_c_api.h>) && defined(__x86_64__)

#include "session.hpp"
#include "translate.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <mutex>

namespace weir::onnx {

namespace {

// A translated model and its session, which all threads share.
struct Model {
  explicit Model(const Runtime& of)
      : runtime(of), session(of.api().ReleaseSession), memory(of.api().ReleaseMemoryInfo) {}
  const Runtime& runtime;
  Handle<OrtSession> session;
  Handle<OrtMemoryInfo> memory;
  Translation about = {};
};

bool multiplies_bytes_exactly() { return __builtin_cpu_supports("avx512vnni") || __builtin_cpu_supports("avxvnni"); }

Result<std::shared_ptr<const Model>> open_model(const Runtime& runtime, std::string_view tflite) {
  TRY(about, translate(tflite));
  auto model = std::make_shared<Model>(runtime);
  model->about = std::move(about);
  TRY(opened,
      open_session(runtime, model->about.onnx, {.exact = !multiplies_bytes_exactly(), .shared = true}, model->session));
  model->about.onnx = {};  // the session has its own copy
  const OrtApi& api = runtime.api();
  TRY(placed, runtime.check(api.CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, model->memory.out())));
  return std::shared_ptr<const Model>(std::move(model));
}

// One for all that are open at the same time, told by its bytes.
Result<std::shared_ptr<const Model>> shared_model(const std::string& library, std::string_view tflite) {
  static std::mutex mutex;
  static auto& open = *new std::map<std::string, std::weak_ptr<const Model>>;
  std::string key = fmt::format("{}:{}:{}", tflite.size(), std::hash<std::string_view>{}(tflite), library);
  std::lock_guard lock(mutex);
  std::erase_if(open, [](const auto& each) { return each.second.expired(); });
  if (auto found = open.find(key); found != open.end())
    if (auto held = found->second.lock()) return held;
  TRY(runtime, Runtime::of(library));
  TRY(model, open_model(*runtime, tflite));
  open[key] = model;
  return model;
}

// One thread's picture and numbers, bound to the session's input and outputs for good.
class Run final : public TranslatedRun {
 public:
  explicit Run(std::shared_ptr<const Model> model)
      : model_(std::move(model)),
        picture_value_(api().ReleaseValue),
        offsets_value_(api().ReleaseValue),
        scores_value_(api().ReleaseValue) {}

  Status bind() {
    const SsdHead& head = about().head;
    auto anchors = static_cast<std::int64_t>(head.anchors.size());
    TRY(in, bind(picture_value_, picture_, {1, about().height, about().width, 3}));
    TRY(first, bind(offsets_value_, offsets_, {1, anchors, 4}));
    return bind(scores_value_, scores_, {1, anchors, head.columns});
  }

  int width() const override { return about().width; }
  int height() const override { return about().height; }
  std::span<std::uint8_t> picture() override { return picture_; }
  Status run() override {
    const char *in = "picture", *out[] = {about().offsets.c_str(), about().scores.c_str()};
    const OrtValue* inputs[] = {picture_value_.get()};
    OrtValue* outputs[] = {offsets_value_.get(), scores_value_.get()};
    return model_->runtime.check(api().Run(model_->session.get(), nullptr, &in, inputs, 1, out, 2, outputs));
  }
  std::vector<SsdBox> boxes(double min_score) const { return find_boxes(about().head, offsets_, scores_, min_score); }

 private:
  const OrtApi& api() const { return model_->runtime.api(); }
  const Translation& about() const { return model_->about; }
  Status bind(Handle<OrtValue>& value, std::vector<std::uint8_t>& bytes, const std::vector<std::int64_t>& dims) {
    size_t count = 1;
    for (std::int64_t side : dims) count *= static_cast<size_t>(side);
    bytes.resize(count);
    return model_->runtime.check(
        api().CreateTensorWithDataAsOrtValue(model_->memory.get(), bytes.data(), bytes.size(), dims.data(), dims.size(),
                                             ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, value.out()));
  }

  std::shared_ptr<const Model> model_;
  std::vector<std::uint8_t> picture_, offsets_, scores_;
  Handle<OrtValue> picture_value_, offsets_value_, scores_value_;
};

Result<std::unique_ptr<Run>> open_run(const std::string& library, std::string_view tflite) {
  TRY(model, shared_model(library, tflite));
  auto run = std::make_unique<Run>(std::move(model));
  TRY(bound, run->bind());
  TRY(ran, run->run());  // what cannot run is found out here
  return run;
}

class TranslatedDetector final : public Detector {
 public:
  TranslatedDetector(std::unique_ptr<Run> run, std::vector<std::string> labels)
      : run_(std::move(run)), labels_(std::move(labels)) {}

  Result<std::vector<std::vector<Detection>>> detect(std::span<const Look> looks) override {
    std::vector<std::vector<Detection>> all;
    for (const Look& look : looks) {
      Region region = region_of(look);
      if (!look.picture->to_rgb(region, run_->width(), run_->height(), run_->picture()))
        return stream_failure(restart::StreamErrorCode::codec_unsupported, "its pixels cannot be converted");
      TRY(ran, run_->run());
      all.push_back(place(run_->boxes(look.min_score), region));
    }
    return all;
  }

 private:
  // Classes without a label ("" or "???") are those that the model was never taught.
  std::vector<Detection> place(const std::vector<SsdBox>& boxes, const Region& region) const {
    std::vector<Detection> found;
    for (const SsdBox& b : boxes) {
      bool numbers = std::isfinite(b.top) && std::isfinite(b.left) && std::isfinite(b.bottom) && std::isfinite(b.right);
      if (!numbers || static_cast<size_t>(b.klass) >= labels_.size()) continue;
      const std::string& label = labels_[static_cast<size_t>(b.klass)];
      Box box = clipped({region.x + b.left * double(region.width), region.y + b.top * double(region.height),
                         region.x + b.right * double(region.width), region.y + b.bottom * double(region.height)},
                        region);
      if (label.empty() || label == "???" || box.x1 >= box.x2 || box.y1 >= box.y2) continue;
      found.push_back({label, std::min(double(b.score), 1.0), box});
    }
    return found;
  }

  std::unique_ptr<Run> run_;
  std::vector<std::string> labels_;
};

}  // namespace

Result<std::unique_ptr<TranslatedRun>> TranslatedRun::open(const std::string& library, std::string_view tflite) {
  TRY(run, open_run(library, tflite));
  return std::unique_ptr<TranslatedRun>(std::move(run));
}

Result<std::unique_ptr<Detector>> make_translated(const std::string& library, std::string_view tflite,
                                                  std::vector<std::string> labels) {
  TRY(run, open_run(library, tflite));
  return std::unique_ptr<Detector>(std::make_unique<TranslatedDetector>(std::move(run), std::move(labels)));
}

}  // namespace weir::onnx

#else

namespace weir::onnx {

Result<std::unique_ptr<TranslatedRun>> TranslatedRun::open(const std::string&, std::string_view) {
  return model_failure("this worker was built without ONNX Runtime, or for another processor than x86-64");
}

Result<std::unique_ptr<Detector>> make_translated(const std::string& library, std::string_view tflite,
                                                  std::vector<std::string>) {
  return TranslatedRun::open(library, tflite).error();
}

}  // namespace weir::onnx

#endif
