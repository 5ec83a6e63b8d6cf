// Outlet: where a worker says what it sees.
//
// A runner's worker says it to a publisher, which checks the camera's lease before each event. A worker that needs no
// lease has another outlet in the publisher's place, for which only `say` is of interest. `say` and `counters` may be
// called from any thread, the rest from the loop's.
#pragma once

#include "weir/event/events.hpp"
#include "weir/link/shard.hpp"
#include "weir/worker/publisher_counters.hpp"

#include <boost/asio/awaitable.hpp>

#include <optional>

namespace weir::worker {

class Outlet {
 public:
  virtual ~Outlet() = default;
  // `decoded`: when the picture left the decoder; unset: not measured.
  virtual void say(event::DetectionEvent seen, Instant decoded) = 0;
  virtual void say(event::StreamStatus status, event::Kind kind) = 0;
  virtual void say(event::StreamErrorEvent error) = 0;

  // The right to speak for a camera, and its ends; nothing where no right is needed.
  virtual void set_right(const link::LeaseGrant&) {}
  virtual void lost(CameraId) {}
  // Returns when nothing of the camera is on its way any more; the capture time of the last detection that went out.
  virtual boost::asio::awaitable<std::optional<WallTime>> silence(CameraId) { co_return std::nullopt; }
  virtual void forget(CameraId) {}
  virtual PublisherCounters counters() const { return {}; }
};

}  // namespace weir::worker
