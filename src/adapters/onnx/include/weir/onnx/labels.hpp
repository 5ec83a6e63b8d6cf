// What the classes of a .onnx model are called: as the given file says, else the model's own list of names.
//
// The list is found without ONNX Runtime, which would take seconds to open a large model. A model without names is an
// error here, also where the detector would take COCO's: how many classes a model has is known only once it ran.
// Reads a file; any thread.
#pragma once

#include "weir/ports/model_files.hpp"

namespace weir::onnx {

// The value of the metadata's `names` in a model's bytes, read; empty where there is none.
std::vector<std::string> packed_names(std::string_view model);
Result<std::vector<std::string>> labels_of(const ModelFiles& files);

}  // namespace weir::onnx
