// Translate: a quantised detection model of TensorFlow Lite, said again in ONNX.
//
// Bytes stay bytes: int8 activations become uint8 ones (128 more, their zero point too), which is what ONNX Runtime is
// fast with on x86-64; weights stay int8, with a scale for each channel. Pictures stand in ONNX with their channels
// first. The operator at the end, which turns numbers into detections, is not translated: its place take the numbers
// themselves and what they mean (ssd.hpp). A model with anything that is not known here, in any operator, is an error
// that says what. Pure; any thread.
#pragma once

#include "ssd.hpp"

#include "weir/base/result.hpp"

#include <string>
#include <string_view>

namespace weir::onnx {

struct Translation {
  // Takes "picture", bytes [1,height,width,3]; answers bytes: `offsets` [1,anchors,4] and `scores` [1,anchors,columns].
  std::string onnx;
  int width = 0, height = 0;
  std::string offsets, scores;
  SsdHead head;
};

Result<Translation> translate(std::string_view tflite);

}  // namespace weir::onnx
