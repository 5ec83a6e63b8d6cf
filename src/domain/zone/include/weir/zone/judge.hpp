// Judge: which detections of a picture a camera's configuration lets through, and the zones they lie in.
//
// A label that the camera does not allow is dropped first. A zone matches a detection when three things agree: the
// place (the camera's `zone_test`), the label (the zone's `allow_labels`, which narrow the camera's), and the score. A
// zone's own `min_score` replaces the camera's, be it lower or higher; an exclude zone without one excludes at every
// score. The matching zone of the highest priority decides, among equals exclude before include. Where none matches, a
// detection passes by the camera's `min_score`, unless the camera has an include zone: then it must lie in one.
//
// Polygons are in pixels of the configured `frame_size` and stretch to the picture's size; without one they are in
// pixels of the picture.
// Pure functions; any thread.
#pragma once

#include "weir/camera/config.hpp"
#include "weir/zone/detection.hpp"

#include <vector>

namespace weir::zone {

// The detections that pass, in their order, with `zone_ids` set to all matching include zones by falling priority.
std::vector<Detection> judge(std::vector<Detection> seen, const camera::Config& config, int width, int height);

// No detection with a lower score can pass: a detector need not report it.
double least_score(const camera::Config& config);

}  // namespace weir::zone
