// Prints the labels of models, for `weir model labels` and `weir-worker labels`. Main thread only.
#pragma once

#include "weir/base/json.hpp"

#include <string>

namespace weir::apps {

// `models` as in GET /v1/models. `wanted` is the name of a model, or a detector, which means its default; "" is the
// model of a camera that names none. One label a line, or as JSON all models that match. The exit code.
Result<int> print_labels(const json::array& models, const std::string& wanted, bool as_json);

}  // namespace weir::apps
