// worker_bare_tflite: what TensorFlow Lite alone takes for pictures that are ready for it, as the measure of Weir's
// detector. Prepared pictures come from a file, one each so many milliseconds, as a camera would bring them; the result
// is one JSON line. Main thread only.
//
//   worker_bare_tflite LIBRARY MODEL PICTURES INTERVAL_MS COUNT
#include <tensorflow/lite/c/c_api.h>

#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

// The first fields of XNNPACK's options, and the flags without which quantised models do not profit from it.
struct XnnpackOptions {
  std::int32_t threads = 1;
  std::uint32_t flags = 3;
  char rest[120] = {};
};

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "worker_bare_tflite: %s\n", why.c_str());
  std::exit(1);
}

void* library = nullptr;
template <class F>
F* find(F*, const char* name) {
  void* found = dlsym(library, name);
  if (found == nullptr) fail(std::string("no function ") + name);
  return reinterpret_cast<F*>(found);
}
#define TFLITE(name) find(static_cast<decltype(&name)>(nullptr), #name)

std::string read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.empty()) fail(std::string("cannot read ") + path);
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) fail("LIBRARY MODEL PICTURES INTERVAL_MS COUNT");
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(dlerror());
  std::string model_bytes = read(argv[2]), pictures = read(argv[3]);
  std::chrono::milliseconds interval(std::atoi(argv[4]));
  int count = std::atoi(argv[5]);

  TfLiteModel* model = TFLITE(TfLiteModelCreate)(model_bytes.data(), model_bytes.size());
  TfLiteInterpreterOptions* options = TFLITE(TfLiteInterpreterOptionsCreate)();
  TFLITE(TfLiteInterpreterOptionsSetNumThreads)(options, 1);
  XnnpackOptions xnnpack;
  TfLiteDelegate* (*make_delegate)(const XnnpackOptions*) = nullptr;
  make_delegate = find(make_delegate, "TfLiteXNNPackDelegateCreate");
  TFLITE(TfLiteInterpreterOptionsAddDelegate)(options, make_delegate(&xnnpack));
  TfLiteInterpreter* interpreter = TFLITE(TfLiteInterpreterCreate)(model, options);
  if (interpreter == nullptr || TFLITE(TfLiteInterpreterAllocateTensors)(interpreter) != kTfLiteOk)
    fail("the model cannot be loaded");
  TfLiteTensor* input = TFLITE(TfLiteInterpreterGetInputTensor)(interpreter, 0);
  size_t size = TFLITE(TfLiteTensorByteSize)(input);
  void* pixels = TFLITE(TfLiteTensorData)(input);
  auto* invoke = TFLITE(TfLiteInterpreterInvoke);
  if (pictures.size() < size) fail("not one whole picture");

  constexpr int kWarmUp = 10;
  double total_s = 0;
  Clock::time_point due = Clock::now();
  for (int i = -kWarmUp; i < count; ++i) {
    size_t which = static_cast<size_t>(i + kWarmUp) % (pictures.size() / size);
    std::this_thread::sleep_until(due += interval);
    Clock::time_point began = Clock::now();
    std::memcpy(pixels, pictures.data() + which * size, size);
    if (invoke(interpreter) != kTfLiteOk) fail("the model failed");
    if (i >= 0) total_s += std::chrono::duration<double>(Clock::now() - began).count();
  }
  std::printf("{\"pictures\":%d,\"mean_ms\":%.3f}\n", count, 1000 * total_s / count);
}
