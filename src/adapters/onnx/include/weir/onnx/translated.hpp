// The detector `tflite` on ONNX Runtime: a quantised .tflite model of the SSD family, such as EfficientDet-Lite, which
// that library runs on x86-64 more than twice as fast as TensorFlow Lite does, once it is said in ONNX (translate.hpp).
//
// The looked-at region is stretched into the model's picture. An unknown model or library, or another processor, is
// an error, and the caller uses TensorFlow Lite instead. Detectors of the same model share its weights. A detector,
// and a TranslatedRun, belongs to its inference thread.
#pragma once

#include "weir/ports/detector.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::onnx {

Result<std::unique_ptr<Detector>> make_translated(const std::string& library, std::string_view tflite,
                                                  std::vector<std::string> labels);

// The model alone: fill `picture` with packed RGB, and run. What the detector costs more is measured against this.
class TranslatedRun {
 public:
  static Result<std::unique_ptr<TranslatedRun>> open(const std::string& library, std::string_view tflite);
  virtual ~TranslatedRun() = default;
  virtual int width() const = 0;
  virtual int height() const = 0;
  virtual std::span<std::uint8_t> picture() = 0;
  virtual Status run() = 0;
};

}  // namespace weir::onnx
