// Which detector a camera's model means, and where its files lie. Plain functions; any thread.
#pragma once

#include "common/detector_folders.hpp"

#include "weir/ports/detector.hpp"
#include "weir/ports/model_labels.hpp"

namespace weir::apps {

DetectorFactory detector_factory(DetectorFolders folders);
// The same where a model's name is its file's in `models`, whatever that ends with, and labels stand in the model.
DetectorFactory file_detector_factory(std::string models, DetectorFolders folders);

// Every model in the folder and its labels, in the order of its classes. A model whose labels cannot be read is left
// out, and the log says so. Nothing is run or loaded, but files are read whole.
std::vector<ModelLabels> list_models(const DetectorFolders& folders);

}  // namespace weir::apps
