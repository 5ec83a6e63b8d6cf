#if __has_include(<onnxruntime_c_api.h>)

#include "runtime.hpp"

#include "weir/base/shared_library.hpp"

#include <fmt/format.h>

#include <map>
#include <mutex>

namespace weir::onnx {

namespace {

constexpr std::uint32_t kApiOldest = 11;  // ONNX Runtime 1.11

void say_nothing(void*, OrtLoggingLevel, const char*, const char*, const char*, const char*) {}

}  // namespace

Status Runtime::check(OrtStatus* status) const {
  if (status == nullptr) return ok();
  Error error = model_failure(api_->GetErrorMessage(status));
  api_->ReleaseStatus(status);
  return error;
}

Result<const Runtime*> Runtime::load(const std::string& path) {
  TRY(library, for_model(load_library(path)));
  TRY(entry, for_model(find_symbol(library, "OrtGetApiBase")));
  const OrtApiBase* base = reinterpret_cast<decltype(&OrtGetApiBase)>(entry)();
  auto runtime = std::make_unique<Runtime>();
  // A library older than the header says no, and complains on stderr, to every version that it does not know.
  for (std::uint32_t version = ORT_API_VERSION; runtime->api_ == nullptr && version >= kApiOldest; --version)
    runtime->api_ = base->GetApi(version);
  if (runtime->api_ == nullptr)
    return model_failure(fmt::format("{} is ONNX Runtime {}, which is too old", path, base->GetVersionString()));
  TRY(made, runtime->check(runtime->api_->CreateEnvWithCustomLogger(say_nothing, nullptr, ORT_LOGGING_LEVEL_FATAL,
                                                                    "weir", &runtime->env_)));
  return runtime.release();
}

Result<const Runtime*> Runtime::of(const std::string& library) {
  static std::mutex mutex;
  static auto& loaded = *new std::map<std::string, const Runtime*>;  // for good, as the libraries themselves
  std::lock_guard lock(mutex);
  if (auto found = loaded.find(library); found != loaded.end()) return found->second;
  TRY(runtime, load(library));
  return loaded[library] = runtime;
}

}  // namespace weir::onnx

#endif
