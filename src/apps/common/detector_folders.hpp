// Where models and inference libraries lie: in the folders that the settings name, or beside the programs.
// Plain functions; any thread.
#pragma once

#include "weir/base/settings.hpp"

namespace weir::apps {

constexpr const char* kTfliteLibrary = "libtensorflowlite_c.so";
constexpr const char* kOnnxLibrary = "libonnxruntime.so.1";
constexpr const char* kDefaultModel = "efficientdet-lite0";

struct DetectorFolders {
  std::string models;
  std::string libraries;
};
DetectorFolders detector_folders(const Settings& settings);

}  // namespace weir::apps
