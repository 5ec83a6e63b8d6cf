// Which detector a camera's model means, and where its files lie. Plain functions; any thread.
#pragma once

#include "../detector_folders.hpp"

#include "weir/ports/detector.hpp"

namespace weir::apps {

DetectorFactory detector_factory(DetectorFolders folders);

}  // namespace weir::apps
