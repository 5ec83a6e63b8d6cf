// What a model's file says about the model in it: which detector runs it, told by the file's content and not by its
// name, and what its labels mean in the fields of a cluster's results: `weir_fields.json` in the archive behind a .tflite
// model, `weir_fields` in the metadata of an .onnx model. Reads a file whole; any thread.
#pragma once

#include "weir/detector/models.hpp"

namespace weir::apps {

Result<detector::ModelFacts> model_facts(const std::string& path);

}  // namespace weir::apps
