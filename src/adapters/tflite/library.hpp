// Library: the functions of TensorFlow Lite's C interface that the detector uses, found at run time, and what is known
// of XNNPACK's options, whose header is not part of it. Plain pointers; any thread.
#pragma once

#include "weir/ports/model_files.hpp"

#include <tensorflow/lite/c/c_api.h>

namespace weir::tflite {

// The first fields of XNNPACK's options in TensorFlow Lite 2.6 to 2.15; room for those that follow, all of them zero.
struct XnnpackOptions {
  std::int32_t threads;
  std::uint32_t flags;
  char rest[120];
};
// Without these flags quantised models run five times slower.
inline constexpr std::uint32_t kSigned8 = 1, kUnsigned8 = 2;

struct Api {
  decltype(&TfLiteVersion) version;
  decltype(&TfLiteModelCreate) model_create;
  decltype(&TfLiteModelDelete) model_delete;
  decltype(&TfLiteInterpreterOptionsCreate) options_create;
  decltype(&TfLiteInterpreterOptionsDelete) options_delete;
  decltype(&TfLiteInterpreterOptionsSetNumThreads) options_threads;
  decltype(&TfLiteInterpreterOptionsAddDelegate) options_delegate;
  decltype(&TfLiteInterpreterOptionsSetErrorReporter) options_reporter;
  decltype(&TfLiteInterpreterCreate) create;
  decltype(&TfLiteInterpreterDelete) destroy;
  decltype(&TfLiteInterpreterAllocateTensors) allocate;
  decltype(&TfLiteInterpreterInvoke) invoke;
  decltype(&TfLiteInterpreterGetInputTensorCount) inputs;
  decltype(&TfLiteInterpreterGetInputTensor) input;
  decltype(&TfLiteInterpreterGetOutputTensorCount) outputs;
  decltype(&TfLiteInterpreterGetOutputTensor) output;
  decltype(&TfLiteTensorType) type;
  decltype(&TfLiteTensorNumDims) dims;
  decltype(&TfLiteTensorDim) dim;
  decltype(&TfLiteTensorByteSize) bytes;
  decltype(&TfLiteTensorData) data;
  // Only where the library has it and its options are known; newer ones use XNNPACK by themselves.
  TfLiteDelegate* (*xnnpack_create)(const XnnpackOptions*) = nullptr;
  void (*xnnpack_delete)(TfLiteDelegate*) = nullptr;
};

Result<Api> load_api(const std::string& path);

}  // namespace weir::tflite
