// What a .onnx model says of itself: what its classes are called, as the given file says, else the model's own list of
// names; and the other texts in its metadata.
//
// The list is found without ONNX Runtime, which would take seconds to open a large model. A model without names is an
// error here, also where the detector would take COCO's: how many classes a model has is known only once it ran.
// Reads a file; any thread.
#pragma once

#include "weir/ports/model_files.hpp"

namespace weir::onnx {

// Whether these bytes are a model in this format, as far as its outermost fields tell.
bool is_model(std::string_view bytes);
// A text of the metadata in a model's bytes; empty where there is none.
std::string_view metadata_of(std::string_view model, std::string_view key);
// The value of the metadata's `names`, read; empty where there is none.
std::vector<std::string> packed_names(std::string_view model);
Result<std::vector<std::string>> labels_of(const ModelFiles& files);

}  // namespace weir::onnx
