// Runtime: ONNX Runtime as found at run time, and its handles as values that release themselves.
//
// The C interface is a table that only grows; an older library is asked for the older table, of which only functions
// that all have are used. One for the process; any thread.
#pragma once

#include "weir/ports/model_files.hpp"

#include <onnxruntime_c_api.h>

#include <memory>

namespace weir::onnx {

class Runtime {
 public:
  // Loads the library when it is first asked for.
  static Result<const Runtime*> of(const std::string& library);

  const OrtApi& api() const { return *api_; }
  const OrtEnv* env() const { return env_; }
  // An error whose sentence is the library's. Takes the status.
  Status check(OrtStatus* status) const;

 private:
  static Result<const Runtime*> load(const std::string& library);
  const OrtApi* api_ = nullptr;
  OrtEnv* env_ = nullptr;
};

// Owns one handle of the library; `release` is the table's own function for it.
template <class T>
class Handle {
 public:
  using Release = void (*)(T*);
  explicit Handle(Release release) : release_(release) {}
  Handle(const Handle&) = delete;
  ~Handle() { reset(); }
  T* get() const { return held_; }
  // For functions that make one.
  T** out() {
    reset();
    return &held_;
  }

 private:
  void reset() {
    if (held_ != nullptr) release_(held_);
    held_ = nullptr;
  }
  Release release_;
  T* held_ = nullptr;
};

}  // namespace weir::onnx
