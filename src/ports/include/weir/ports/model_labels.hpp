// ModelLabels: what the detections of a model can be called.
//
// The control plane has no model, so a runner that registers lists the labels of its own models. It leaves out a
// label that cannot stand in a camera's `allow_labels` because it is too long or holds what a label must not. Plain
// values and functions; any thread.
#pragma once

#include "weir/base/json.hpp"

#include <string>
#include <vector>

namespace weir {

struct ModelLabels {
  std::string detector;       // tflite, onnx, hog
  std::string name = {};      // as in a camera's `model`; "" where the detector has but one
  bool is_default = false;    // what a camera gets that names the detector alone
  std::vector<std::string> labels = {};
};
template <class V>
void fields(V& v, ModelLabels& m) {
  v.required("detector", m.detector);
  v.optional("name", m.name);
  v.optional("default", m.is_default);
  v.optional("labels", m.labels);
}

bool is_label(const std::string& text);
inline constexpr size_t kModelsMax = 64, kModelLabelsMax = 10'000;  // of one runner; labels of all its models together
// What is wrong with a runner's list, "" where nothing is.
std::string models_problem(const std::vector<ModelLabels>& models);

}  // namespace weir
