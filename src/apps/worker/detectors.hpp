// Which detector a camera's model means, and where its files lie. Plain functions; any thread.
#pragma once

#include "weir/base/settings.hpp"
#include "weir/ports/detector.hpp"

namespace weir::apps {

// Folders from the settings, or beside the programs.
struct DetectorFolders {
  std::string models;
  std::string libraries;
};
DetectorFolders detector_folders(const Settings& settings);

DetectorFactory detector_factory(DetectorFolders folders);

}  // namespace weir::apps
