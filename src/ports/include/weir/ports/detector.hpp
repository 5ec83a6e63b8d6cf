// Detector: finds what is in a picture.
//
// A detector belongs to one inference thread. Creating one loads its library and its model, which may take seconds and
// fail with MODEL_ERROR and a sentence that names the file. Boxes are in pixels of the whole picture, also where only a
// region of it was looked at.
#pragma once

#include "weir/ports/video_source.hpp"
#include "weir/zone/detection.hpp"

#include <algorithm>
#include <functional>

namespace weir {

struct Look {
  PicturePtr picture;
  Region region;         // the part of the picture to look at; an empty one means the whole picture
  double min_score = 0;  // detections that are less certain need not be reported
};

class Detector {
 public:
  virtual ~Detector() = default;
  // Up to how many pictures one call is faster than a call for each.
  virtual size_t batch_max() const { return 1; }
  virtual Result<std::vector<std::vector<Detection>>> detect(std::span<const Look> looks) = 0;
};

// Makes the detector that a camera's model names.
using DetectorFactory = std::function<Result<std::unique_ptr<Detector>>(const camera::Model& model)>;

// The region that a look really means: inside the picture, never empty.
inline Region region_of(const Look& look) {
  int width = look.picture->width(), height = look.picture->height();
  int x1 = std::clamp(look.region.x, 0, width), x2 = std::clamp(look.region.x + look.region.width, x1, width);
  int y1 = std::clamp(look.region.y, 0, height), y2 = std::clamp(look.region.y + look.region.height, y1, height);
  return x1 < x2 && y1 < y2 ? Region{x1, y1, x2 - x1, y2 - y1} : Region{0, 0, width, height};
}

// The part of a box that lies in the region; without extent where there is none.
inline Box clipped(const Box& box, const Region& region) {
  double left = region.x, top = region.y, right = left + region.width, bottom = top + region.height;
  return {std::clamp(box.x1, left, right), std::clamp(box.y1, top, bottom), std::clamp(box.x2, left, right),
          std::clamp(box.y2, top, bottom)};
}

}  // namespace weir
