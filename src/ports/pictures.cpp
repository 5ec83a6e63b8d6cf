#include "weir/ports/pictures.hpp"

#include <algorithm>

namespace weir {

Async<Nothing> MemoryPictures::put_picture(CameraId camera, SnapshotPicture picture) {
  if (kept_.size() == kMost) kept_.pop_front();
  kept_.push_back({std::move(camera), std::move(picture)});
  co_return ok();
}

std::optional<SnapshotPicture> MemoryPictures::kept(const CameraId& camera, const std::string& request) const {
  for (const Kept& each : kept_)
    if (each.camera == camera && each.picture.request == request) return each.picture;
  return std::nullopt;
}

Async<std::optional<SnapshotPicture>> MemoryPictures::find_picture(CameraId camera, std::string request) {
  co_return kept(camera, request);
}

}  // namespace weir
