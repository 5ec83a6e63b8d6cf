// The detector `onnx`: a YOLO model, run by ONNX Runtime.
//
// Which YOLO it is, is told from the shapes of its input and output (yolo.hpp). Pictures are fitted into the model's
// input with grey bars, so that nothing is distorted; where the model leaves its input's size open, it is 640x640.
// Labels come from the given file, else from the model's own list of names, else they are COCO's for a model of 80
// classes. With several threads a model whose batch is open takes several pictures in one call. Only 32-bit floats.
// A detector belongs to its inference thread.
#pragma once

#include "weir/ports/detector.hpp"
#include "weir/ports/model_files.hpp"

namespace weir::onnx {

Result<std::unique_ptr<Detector>> make(const ModelFiles& files, int threads);

}  // namespace weir::onnx
