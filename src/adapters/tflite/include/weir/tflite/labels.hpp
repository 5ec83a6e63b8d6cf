// What the classes of a .tflite model are called: as the given file says, else the list inside the model.
// Reads a file; any thread.
#pragma once

#include "weir/ports/model_files.hpp"

namespace weir::tflite {

// `bytes` are the model's.
Result<std::vector<std::string>> labels_of(const ModelFiles& files, std::string_view bytes);

}  // namespace weir::tflite
