// The detector `tflite`: a TensorFlow Lite model of the SSD family, such as EfficientDet-Lite, run by XNNPACK.
//
// The model takes one RGB picture (8-bit, or float from -1 to 1), into which the looked-at region is stretched, and
// answers boxes, classes, scores and their count, as the detection post-processing operator does. Everything else is a
// MODEL_ERROR. Labels come from the given file, else from the one inside the model.
// A detector belongs to its inference thread.
#pragma once

#include "weir/ports/detector.hpp"
#include "weir/ports/model_files.hpp"

namespace weir::tflite {

Result<std::unique_ptr<Detector>> make(const ModelFiles& files, int threads);

}  // namespace weir::tflite
