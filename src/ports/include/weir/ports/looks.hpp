// Looks: what is seen in a stream's pictures, for whoever draws it into them.
//
// Pictures come faster than they can be looked at. `due` says whether the next one is wanted, `offer` hands it over
// without waiting, and `newest` answers with what was seen last, a picture or several before. `due` and `offer` belong
// to one thread; `newest` may be called from any.
#pragma once

#include "weir/ports/video_source.hpp"
#include "weir/zone/detection.hpp"

#include <memory>
#include <vector>

namespace weir {

struct Sighting {
  std::vector<Detection> detections;  // boxes in pixels of the picture
  int width = 0, height = 0;          // of the picture
  Duration stream_time{};             // the picture's
  WallTime captured{};
  Instant received{};                 // when the picture arrived
};

class Looks {
 public:
  virtual ~Looks() = default;
  virtual bool due(Instant now) = 0;
  // A picture that still waits is replaced.
  virtual void offer(PicturePtr picture) = 0;
  // Null where nothing was looked at yet.
  virtual std::shared_ptr<const Sighting> newest() const = 0;
};

}  // namespace weir
