// Pictures: a camera's picture on its way from the runner that holds the camera to the client that asked for it.
//
// The control plane that was asked may be another one than the runner talks to; what they share is the store. A
// picture is not kept as a record: the store forgets it when the next one comes, a few seconds later or more. Two
// control planes may ask for the same camera at once, and neither takes the other's answer away. Loop thread only.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/time.hpp"
#include "weir/ports/async.hpp"

#include <deque>
#include <optional>
#include <string>

namespace weir {

struct SnapshotPicture {
  std::string request;            // the id of the request that it answers
  std::string jpeg = {};          // base64url; empty: the runner has no picture of this camera
  std::string captured_at = {};   // as the runner says
};

class Pictures {
 public:
  virtual ~Pictures() = default;

  virtual Async<Nothing> put_picture(CameraId camera, SnapshotPicture picture) = 0;
  // The answer to this very request, or nothing yet.
  virtual Async<std::optional<SnapshotPicture>> find_picture(CameraId camera, std::string request) = 0;
};

// For a store that a single control plane opens: the picture need not leave its memory, and no lease waits behind the
// writing of it. Keeps the last few.
class MemoryPictures final : public Pictures {
 public:
  Async<Nothing> put_picture(CameraId camera, SnapshotPicture picture) override;
  Async<std::optional<SnapshotPicture>> find_picture(CameraId camera, std::string request) override;

 private:
  static constexpr size_t kMost = 64;
  struct Kept {
    CameraId camera;
    SnapshotPicture picture;
  };
  std::optional<SnapshotPicture> kept(const CameraId& camera, const std::string& request) const;
  std::deque<Kept> kept_;  // the newest last
};

}  // namespace weir
