// Session: a model made ready to run by ONNX Runtime, and the settings that all of Weir's have in common.
// Running it is safe from several threads at once, each with inputs and outputs of its own.
#pragma once

#include "runtime.hpp"

#include <string_view>

namespace weir::onnx {

struct SessionNeeds {
  int threads = 1;
  // Sums of products of uint8 and int8 must be exact also where the processor has no instructions for them, and they
  // would overflow on the fast way. Floats do not need it.
  bool exact = false;
  // Several threads run it: each takes memory for what it just computes, not one block for everything.
  bool shared = false;
};
Status open_session(const Runtime& runtime, std::string_view onnx, const SessionNeeds& needs,
                    Handle<OrtSession>& session);

}  // namespace weir::onnx
