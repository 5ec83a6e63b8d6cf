// worker_bare_onnx: what ONNX Runtime alone takes for the default model and pictures that are ready for it, as the
// measure of Weir's detector. Prepared pictures come from a file, one each so many milliseconds, as a camera would
// bring them; the result is one JSON line. Main thread only.
//
//   worker_bare_onnx LIBRARY MODEL PICTURES INTERVAL_MS COUNT
#include "weir/onnx/translated.hpp"
#include "weir/base/plain_file.hpp"
#include "weir/ports/model_files.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "worker_bare_onnx: %s\n", why.c_str());
  std::exit(1);
}

template <class T>
T good(weir::Result<T> result) {
  if (!result) fail(result.error().message);
  return *std::move(result);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) fail("LIBRARY MODEL PICTURES INTERVAL_MS COUNT");
  std::string pictures = good(weir::read_plain_file(argv[3], weir::kModelBytesMax));
  std::chrono::milliseconds interval(std::atoi(argv[4]));
  int count = std::atoi(argv[5]);
  auto model = good(weir::onnx::TranslatedRun::open(argv[1], good(weir::read_plain_file(argv[2], weir::kModelBytesMax))));
  std::span<std::uint8_t> pixels = model->picture();
  if (pictures.size() < pixels.size()) fail("not one whole picture");

  constexpr int kWarmUp = 10;
  double total_s = 0;
  Clock::time_point due = Clock::now();
  for (int i = -kWarmUp; i < count; ++i) {
    size_t which = static_cast<size_t>(i + kWarmUp) % (pictures.size() / pixels.size());
    std::this_thread::sleep_until(due += interval);
    Clock::time_point began = Clock::now();
    std::memcpy(pixels.data(), pictures.data() + which * pixels.size(), pixels.size());
    good(model->run());
    if (i >= 0) total_s += std::chrono::duration<double>(Clock::now() - began).count();
  }
  std::printf("{\"pictures\":%d,\"mean_ms\":%.3f}\n", count, 1000 * total_s / count);
}
