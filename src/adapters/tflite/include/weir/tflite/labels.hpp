// What a .tflite model says of itself: what its classes are called, as the given file says, else the list inside the
// model; and the other texts that are packed behind it. Reads a file; any thread.
#pragma once

#include "weir/ports/model_files.hpp"

namespace weir::tflite {

// Whether these bytes are a model in this format, as its mark tells.
bool is_model(std::string_view bytes);
// A text file in the archive behind a model, by its name; empty where there is none.
std::string_view metadata_of(std::string_view model, std::string_view name);
// `bytes` are the model's.
Result<std::vector<std::string>> labels_of(const ModelFiles& files, std::string_view bytes);

}  // namespace weir::tflite
