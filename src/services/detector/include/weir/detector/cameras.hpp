// Cameras: what a detection worker needs of the code that dials, decodes and detects.
//
// A camera here is one subscription's: the same stream for two displays is two cameras. What their detectors see comes
// as Sightings. Loop thread only.
#pragma once

#include "weir/link/shard.hpp"
#include "weir/ports/video_source.hpp"

#include <set>

namespace weir::detector {

class Cameras {
 public:
  virtual ~Cameras() = default;
  // Adds a camera, or changes the one of that name: without a new connection where the dial is the same.
  virtual void add(link::Source source) = 0;
  // At once: what it sees from now on is told to nobody.
  virtual void remove(const CameraId& camera) = 0;
  // Those that send pictures, with a detector that can look at them.
  virtual std::set<CameraId> online() const = 0;
  // The camera's newest picture; null where there is none.
  virtual PicturePtr latest(const CameraId& camera) const = 0;
};

}  // namespace weir::detector
