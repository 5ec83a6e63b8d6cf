#if __has_include(<tensorflow/lite/c/c_api.h>)

#include "library.hpp"

#include "weir/base/shared_library.hpp"

namespace weir::tflite {

namespace {

template <class F>
Status bind(void* library, const char* name, F& function) {
  TRY(found, for_model(find_symbol(library, name)));
  function = reinterpret_cast<F>(found);
  return ok();
}

void bind_xnnpack(void* library, Api& api) {
  int major = 0, minor = 0;
  if (std::sscanf(api.version(), "%d.%d", &major, &minor) != 2 || major != 2 || minor < 6 || minor > 15) return;
  if (bind(library, "TfLiteXNNPackDelegateDelete", api.xnnpack_delete))
    (void)static_cast<bool>(bind(library, "TfLiteXNNPackDelegateCreate", api.xnnpack_create));
}

}  // namespace

Result<Api> load_api(const std::string& path) {
  TRY(library, for_model(load_library(path)));
  Api api{};
  Status bound[] = {
      bind(library, "TfLiteVersion", api.version),
      bind(library, "TfLiteModelCreate", api.model_create),
      bind(library, "TfLiteModelDelete", api.model_delete),
      bind(library, "TfLiteInterpreterOptionsCreate", api.options_create),
      bind(library, "TfLiteInterpreterOptionsDelete", api.options_delete),
      bind(library, "TfLiteInterpreterOptionsSetNumThreads", api.options_threads),
      bind(library, "TfLiteInterpreterOptionsAddDelegate", api.options_delegate),
      bind(library, "TfLiteInterpreterOptionsSetErrorReporter", api.options_reporter),
      bind(library, "TfLiteInterpreterCreate", api.create),
      bind(library, "TfLiteInterpreterDelete", api.destroy),
      bind(library, "TfLiteInterpreterAllocateTensors", api.allocate),
      bind(library, "TfLiteInterpreterInvoke", api.invoke),
      bind(library, "TfLiteInterpreterGetInputTensorCount", api.inputs),
      bind(library, "TfLiteInterpreterGetInputTensor", api.input),
      bind(library, "TfLiteInterpreterGetOutputTensorCount", api.outputs),
      bind(library, "TfLiteInterpreterGetOutputTensor", api.output),
      bind(library, "TfLiteTensorType", api.type),
      bind(library, "TfLiteTensorNumDims", api.dims),
      bind(library, "TfLiteTensorDim", api.dim),
      bind(library, "TfLiteTensorByteSize", api.bytes),
      bind(library, "TfLiteTensorData", api.data),
  };
  for (Status& status : bound)
    if (!status) return std::move(status).error();
  bind_xnnpack(library, api);
  return api;
}

}  // namespace weir::tflite

#endif
