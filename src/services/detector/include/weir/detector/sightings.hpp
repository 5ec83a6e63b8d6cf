// Sightings: what detectors have seen, on its way from their threads to the loop.
//
// Bounded: where the loop does not keep up, the oldest sighting is dropped and counted, because the newest is worth
// most. Any thread.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/cluster/worker_protocol.hpp"

#include <deque>
#include <functional>
#include <mutex>

namespace weir::detector {

struct Sighting {
  CameraId camera;
  WallTime captured{};
  std::vector<cluster::Box> boxes = {};  // at least one
};

class Sightings {
 public:
  // `wake` is called by whoever puts the first one; it must not block.
  explicit Sightings(std::function<void()> wake, size_t most = 1024) : wake_(std::move(wake)), most_(most) {}

  void put(Sighting sighting) {
    bool first = false;
    {
      std::lock_guard lock(mutex_);
      first = waiting_.empty();
      if (waiting_.size() >= most_) {
        waiting_.pop_front();
        ++dropped_;
      }
      waiting_.push_back(std::move(sighting));
    }
    if (first) wake_();
  }
  std::deque<Sighting> take() {
    std::lock_guard lock(mutex_);
    return std::exchange(waiting_, {});
  }
  // A camera of this name that comes later has seen none of it.
  void forget(const CameraId& camera) {
    std::lock_guard lock(mutex_);
    std::erase_if(waiting_, [&](const Sighting& each) { return each.camera == camera; });
  }
  std::uint64_t dropped() const {
    std::lock_guard lock(mutex_);
    return dropped_;
  }

 private:
  const std::function<void()> wake_;
  const size_t most_;
  mutable std::mutex mutex_;
  std::deque<Sighting> waiting_;
  std::uint64_t dropped_ = 0;
};

}  // namespace weir::detector
