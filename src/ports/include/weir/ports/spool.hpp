// Spool: a camera's events that cannot or may not be published now, kept in order on disk ("Unknown is not lost" in
// docs/lease-protocol.md).
//
// Events lie there unstamped: the version under which each will be published is not known yet.
// One log per (camera, tenure). A log exists only while something waits in it: the first append makes it, advancing
// over its last event removes it. Its writer holds a lock while it has it open, so that another process can neither
// adopt nor drop a log that is still written; `close` lets go of the lock and keeps the log.
// Reading is at least once: `peek` shows the oldest events without taking them, `advance` takes them, and after a crash
// some may be shown again. Bounds are kept by forgetting the oldest events, which is counted. A disk that is full or
// broken makes `append` answer false and raises `disk_trouble` until it works again; nothing else happens.
// Blocks on the disk. One thread.
#pragma once

#include "weir/base/result.hpp"
#include "weir/event/event.hpp"
#include "weir/lease/row.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace weir {

struct SpoolBacklog {
  std::uint64_t events = 0;
  std::optional<WallTime> newest = {};  // the capture time of the last event
};

// Events that stand one after the other; the first has the number `first`.
struct SpoolPage {
  std::uint64_t first = 0;
  std::vector<event::Event> events;
  bool later = false;  // events wait, but this process has too few descriptors or too little memory to read them now
};

struct SpoolContent {
  CameraId camera;
  lease::Tenure tenure;
  std::uint64_t bytes = 0;
};

struct SpoolCounts {
  std::uint64_t appended = 0, drained = 0;
  std::uint64_t overflowed = 0;  // forgotten to keep the bounds
  std::uint64_t dropped = 0;     // with their tenure
  std::uint64_t damaged = 0;     // unreadable: the rest of a segment behind a bad checksum
  std::uint64_t refused = 0;     // appends that the disk did not take
  std::uint64_t bytes = 0;       // now, of the logs that are open
  bool disk_trouble = false;
};

class Spool {
 public:
  virtual ~Spool() = default;
  // Takes over what this camera and tenure left behind; none when nothing waits. `conflict`: its writer is alive.
  virtual Result<SpoolBacklog> open(const CameraId& camera, const lease::Tenure& tenure) = 0;
  virtual bool append(const CameraId& camera, const lease::Tenure& tenure, const event::Event& event) = 0;
  // The oldest events: at least one where any waits, otherwise as many as both limits allow, perhaps fewer.
  virtual SpoolPage peek(const CameraId& camera, const lease::Tenure& tenure, size_t events_max, size_t bytes_max) = 0;
  // Takes the events below number `to` out of the log.
  virtual void advance(const CameraId& camera, const lease::Tenure& tenure, std::uint64_t to) = 0;
  virtual void close(const CameraId& camera, const lease::Tenure& tenure) = 0;
  // On return what was appended survives a power failure. Does nothing where nothing is new.
  virtual Status flush() = 0;
  // What `from` left behind now belongs to `to`. `conflict`: its writer is alive, or `to` has something already.
  virtual Status adopt(const CameraId& camera, const lease::Tenure& from, const lease::Tenure& to) = 0;
  // How many events were dropped; those of living writers stay.
  virtual std::uint64_t drop(const CameraId& camera, const lease::Tenure& tenure) = 0;
  virtual std::uint64_t drop_others(const CameraId& camera, const lease::Tenure& keep) = 0;
  // The logs of all workers on this disk; takes no lock, so that no writer has to wait.
  virtual std::vector<SpoolContent> list() const = 0;
  virtual SpoolCounts counts() const = 0;
};

}  // namespace weir
