// Lane: one camera's way to the bus: its right to publish, what waits in memory, and whether something waits on disk.
//
// Order is kept by one rule: what waits on disk is older than what waits in memory. New events go to the end of the
// queue; when they cannot be sent at once the whole queue moves to the disk, oldest first. Only events in flight stay,
// because they may be confirmed. Publisher's thread only.
#pragma once

#include "weir/worker/publisher.hpp"

#include <deque>
#include <functional>

namespace weir::worker {

struct Queued {
  event::Event event;
  Instant decoded{};
};

enum class Voice {
  speaking,
  closing,  // takes nothing new and sends what waits in memory
  silent,
};

class Lane {
 public:
  Lane(CameraId id, std::uint64_t number) : camera(std::move(id)), serial(number) {}

  // Whether an event of the camera may be sent at `now`.
  bool may_speak(Instant now) const {
    return voice != Voice::silent && tenure && version.n != 0 && version != refused_version && now < valid_until;
  }
  bool waits() const { return edge || (backlog && voice == Voice::speaking) || !queue.empty(); }

  // To the end of the queue; what goes over the bounds is dropped: summaries first, then the oldest detection.
  void push(Queued event, const PublisherSettings& bounds, PublisherCounters& counts);
  // Takes `events` off the front.
  void pop(size_t events);
  // Moves the queue to the disk, as far as the disk takes it.
  void spill(Spool& spool, PublisherCounters& counts);
  // Live detections up to this moment were reported by the worker before.
  void begin_after(std::optional<WallTime> moment, PublisherCounters& counts);
  bool too_early(const event::Event& event);
  // A worker that stands by keeps the detections of the last moments, so that a cutover leaves no gap between two
  // workers.
  void stand_by(Queued event, PublisherCounters& counts);
  // The first lease: detections from after the moment at which the worker before fell silent are published; without
  // such a moment none is, because it is not known what was published already. Detections from before the wall clock
  // was set back cannot be compared with that moment, and are not published.
  struct Now {
    Instant boot;
    WallTime wall;
  };
  void end_standby(std::optional<Now> cutover, const PublisherSettings& bounds, PublisherCounters& counts);

  const CameraId camera;
  std::uint64_t serial;  // another one when what was in flight no longer counts
  std::optional<lease::Tenure> tenure;
  lease::Version version{};
  lease::Version refused_version{};  // the bus called it stale
  Instant valid_until{};
  Voice voice = Voice::speaking;
  Instant close_by{};  // closing ends at the latest then
  std::optional<WallTime> after;
  std::optional<WallTime> handed;   // the capture time of the last detection given to the bus
  std::optional<event::Event> edge;  // the latest status from before there was a tenure; sent first
  std::deque<Queued> standby;       // detections from before there was a tenure
  std::deque<Queued> queue;
  size_t queue_bytes = 0;
  size_t flying = 0;                                                  // so many at the front of the queue are in flight
  bool in_flight = false;                                             // anything is, from wherever
  bool backlog = false;                                               // something may wait on disk
  std::vector<std::function<void(std::optional<WallTime>)>> waiting;  // for silence

 private:
  void shed();
};

}  // namespace weir::worker
