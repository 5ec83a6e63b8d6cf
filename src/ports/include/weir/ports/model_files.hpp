// ModelFiles: where the parts of a detector lie, and the careful ways to open them.
//
// A model comes from outside and may be anything. What its library would not survive is tried in a child process first,
// so that a damaged file costs its cameras their detector and nobody else anything. All failures are MODEL_ERRORs whose
// sentence names the file. Everything blocks; any thread.
#pragma once

#include "weir/base/result.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

struct ModelFiles {
  std::string library;  // a path, or a name that the loader finds
  std::string model = {};
  std::string labels = {};  // one label a line; "" those of the model
};

Error model_failure(std::string sentence);

// Loads a shared library for the rest of the process's life: inference libraries do not survive being unloaded.
Result<void*> load_library(const std::string& path);
Result<void*> find_symbol(void* library, const char* name);

Result<std::string> read_model(const std::string& path);
Result<std::vector<std::string>> read_labels(const std::string& path);
// One label a line; the white space around it and lines at the end that are empty do not count.
std::vector<std::string> split_labels(std::string_view text);

// Runs `work` in a child process. An error where it crashes, does not end within `limit`, or answers an error itself,
// whose sentence is then this one's.
Status try_in_child(const std::string& file, std::chrono::milliseconds limit, const std::function<Status()>& work);

}  // namespace weir
