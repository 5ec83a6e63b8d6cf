// The detector `hog`: OpenCV's people detector, which needs no model file.
//
// Slow and less sure than a network: for machines where no model can be had. It knows only the label `person`, upright
// and at least about 100 pixels high; its score is the logistic of the distance from the deciding plane, 0.5 and more.
// OpenCV is loaded with a module of its own, so that only workers that use this detector load it.
// A detector belongs to its inference thread, and computes on no other.
#pragma once

#include "weir/ports/detector.hpp"
#include "weir/ports/model_files.hpp"

namespace weir::opencv {

// `files.library` is the module weir-hog.so.
Result<std::unique_ptr<Detector>> make_hog(const ModelFiles& files);

}  // namespace weir::opencv
