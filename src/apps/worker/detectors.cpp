#include "detectors.hpp"

#include "weir/base/log.hpp"
#include "weir/base/plain_file.hpp"
#include "weir/onnx/detector.hpp"
#include "weir/onnx/labels.hpp"
#include "weir/onnx/translated.hpp"
#include "weir/opencv/hog.hpp"
#include "weir/tflite/detector.hpp"
#include "weir/tflite/labels.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

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

constexpr const char* kOnnxModel = "yolo11n";  // of a camera that names none

// The copy of the library in library_dir where there is one; else its name alone, which the system's loader searches
// for.
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

// Logs which library runs a model, once for as long as that is the same: threads, and cameras that come back, ask
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
  TRY(bytes, for_model(read_plain_file(files.model, kModelBytesMax)));
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

// The labels that can stand in a camera's allow_labels: a class without a name is never reported.
std::vector<std::string> sayable(const std::vector<std::string>& classes) {
  std::vector<std::string> labels;
  std::set<std::string> seen;
  for (const std::string& label : classes)
    if (is_label(label) && label != "???" && seen.insert(label).second) labels.push_back(label);
  return labels;
}

Result<std::vector<std::string>> classes_of(const DetectorFolders& folders, const camera::Model& model) {
  if (model.detector == "onnx") return onnx::labels_of(files_of(folders, model, "", ".onnx", kOnnxLibrary));
  ModelFiles files = files_of(folders, model, "", ".tflite", kTfliteLibrary);
  std::string bytes;
  if (files.labels.empty()) {
    TRY(read, for_model(read_plain_file(files.model, kModelBytesMax)));
    bytes = std::move(read);
  }
  return tflite::labels_of(files, bytes);
}

std::vector<camera::Model> models_in(const std::string& folder) {
  std::vector<camera::Model> found;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    std::string ending = at->path().extension().string(), name = at->path().stem().string();
    if (ending == ".tflite" || ending == ".onnx") found.push_back({ending.substr(1), name});
  }
  std::ranges::sort(found, {}, [](const camera::Model& model) { return std::tie(model.detector, model.name); });
  return found;
}

}  // namespace

std::vector<ModelLabels> list_models(const DetectorFolders& folders) {
  std::vector<ModelLabels> out;
  std::error_code unknown;
  if (fs::exists(hog_module(), unknown)) out.push_back({"hog", "", true, {"person"}});
  for (const camera::Model& model : models_in(folders.models)) {
    auto classes = classes_of(folders, model);
    if (classes) {
      bool is_default = model.name == (model.detector == "onnx" ? kOnnxModel : kDefaultModel);
      out.push_back({model.detector, model.name, is_default, sayable(*classes)});
      if (models_problem(out).empty()) continue;
      out.pop_back();
    }
    log::info("model.labels_unknown", classes ? "there are too many models or labels, or its name is no text"
                                              : classes.error().message)
        .with("detector", model.detector)
        .with("model", model.name);
  }
  return out;
}

DetectorFactory detector_factory(DetectorFolders folders) {
  return [folders = std::move(folders)](const camera::Model& model) -> Result<std::unique_ptr<Detector>> {
    if (model.detector == "tflite")
      return make_tflite(folders, files_of(folders, model, kDefaultModel, ".tflite", kTfliteLibrary));
    if (model.detector == "onnx") return onnx::make(files_of(folders, model, kOnnxModel, ".onnx", kOnnxLibrary), 1);
    if (model.detector == "hog") return opencv::make_hog({.library = hog_module()});
    return stream_failure(restart::StreamErrorCode::model_error, "there is no detector of that name");
  };
}

DetectorFactory file_detector_factory(std::string models, DetectorFolders folders) {
  return [models = std::move(models), folders = std::move(folders)](
             const camera::Model& model) -> Result<std::unique_ptr<Detector>> {
    std::string file = (fs::path(models) / model.name).string();
    if (model.detector == "onnx") return onnx::make({.library = library(folders, kOnnxLibrary), .model = file}, 1);
    return make_tflite(folders, {.library = library(folders, kTfliteLibrary), .model = file});
  };
}

}  // namespace weir::apps
