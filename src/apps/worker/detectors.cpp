#include "detectors.hpp"

#include "weir/base/log.hpp"
#include "weir/onnx/detector.hpp"
#include "weir/onnx/translated.hpp"
#include "weir/opencv/hog.hpp"
#include "weir/tflite/detector.hpp"
#include "weir/tflite/labels.hpp"

#include <filesystem>
#include <map>
#include <mutex>

namespace weir::apps {

namespace fs = std::filesystem;

namespace {

fs::path prefix() {
  std::error_code unknown;
  return fs::read_symlink("/proc/self/exe", unknown).parent_path().parent_path();
}

// Our own module stands beside the program in a build folder, among the libraries when installed.
std::string hog_module() {
  std::error_code unknown;
  fs::path beside = fs::read_symlink("/proc/self/exe", unknown).parent_path() / "weir-hog.so";
  return fs::exists(beside, unknown) ? beside.string() : (prefix() / "lib/weir/weir-hog.so").string();
}

// Our own copy where there is one; else the name alone, which the system's loader searches for.
std::string library(const DetectorFolders& folders, const std::string& name) {
  fs::path own = fs::path(folders.libraries) / name;
  std::error_code unknown;
  return fs::exists(own, unknown) ? own.string() : name;
}

ModelFiles files_of(const DetectorFolders& folders, const camera::Model& model, const std::string& fallback,
                    const std::string& ending, const std::string& library_name) {
  fs::path base = fs::path(folders.models) / (model.name.empty() ? fallback : model.name);
  fs::path labels = base.string() + ".txt";
  std::error_code unknown;
  return {.library = library(folders, library_name),
          .model = base.string() + ending,
          .labels = fs::exists(labels, unknown) ? labels.string() : ""};
}

// Says which library runs a model, once for as long as that is the same: threads, and cameras that come back, ask
// often.
void tell_engine(const std::string& model, const std::string& engine, const std::string& why) {
  static std::mutex mutex;
  static auto& told = *new std::map<std::string, std::string>;
  std::lock_guard lock(mutex);
  if (std::exchange(told[model], engine + why) == engine + why) return;
  log::info("detector.engine", why).with("model", model).with("engine", engine);
}

// A .tflite model runs on ONNX Runtime, which is faster, where that is there and the model is one that it can be given;
// on TensorFlow Lite everywhere else.
Result<std::unique_ptr<Detector>> make_tflite(const DetectorFolders& folders, const ModelFiles& files) {
  TRY(bytes, read_model(files.model));
  TRY(labels, tflite::labels_of(files, bytes));
  auto fast = onnx::make_translated(library(folders, kOnnxLibrary), bytes, std::move(labels));
  if (fast) {
    tell_engine(files.model, "ONNX Runtime", "");
    return fast;
  }
  TRY(usual, tflite::make(files, 1));
  tell_engine(files.model, "TensorFlow Lite", "not on ONNX Runtime: " + fast.error().message);
  return std::move(usual);
}

}  // namespace

DetectorFactory detector_factory(DetectorFolders folders) {
  return [folders = std::move(folders)](const camera::Model& model) -> Result<std::unique_ptr<Detector>> {
    if (model.detector == "tflite")
      return make_tflite(folders, files_of(folders, model, kDefaultModel, ".tflite", kTfliteLibrary));
    if (model.detector == "onnx") return onnx::make(files_of(folders, model, "yolo11n", ".onnx", kOnnxLibrary), 1);
    if (model.detector == "hog") return opencv::make_hog({.library = hog_module()});
    return stream_failure(restart::StreamErrorCode::model_error, "there is no detector of that name");
  };
}

}  // namespace weir::apps
