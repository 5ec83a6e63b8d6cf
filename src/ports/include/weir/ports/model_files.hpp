// ModelFiles: where the parts of a detector lie, and how a part that is missing or damaged is told.
//
// A model comes from outside and may be anything. All failures are MODEL_ERRORs whose sentence names the file.
// Plain values and pure functions; any thread.
#pragma once

#include "weir/base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

struct ModelFiles {
  std::string library;  // a path, or a name that the loader finds
  std::string model = {};
  std::string labels = {};  // one label a line; "" those of the model
};
inline constexpr std::uintmax_t kModelBytesMax = 1 << 30, kLabelsBytesMax = 1 << 20;

Error model_failure(std::string sentence);
// What went wrong with a file or a library, as a failure of the model that needs it.
template <class T>
Result<T> for_model(Result<T> got) {
  if (got) return got;
  return model_failure(got.error().message);
}

// One label a line; the white space around it and lines at the end that are empty do not count.
std::vector<std::string> split_labels(std::string_view text);

}  // namespace weir
