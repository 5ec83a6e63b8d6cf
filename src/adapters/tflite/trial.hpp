// A trial: work that may crash or hang, done in a child process first.
//
// A model comes from outside and may be anything. Work that may crash its library is tried in a child first, so that
// a damaged file costs only the cameras of that model their detector. Blocks until the child has ended; any thread.
#pragma once

#include "weir/base/result.hpp"

#include <chrono>
#include <functional>
#include <string>

namespace weir::tflite {

// Runs `work` in a child process. A MODEL_ERROR where it crashes, does not end within `limit`, or answers an error
// itself, whose sentence is then used; otherwise the sentence names `file`.
Status try_in_child(const std::string& file, std::chrono::milliseconds limit, const std::function<Status()>& work);

}  // namespace weir::tflite
