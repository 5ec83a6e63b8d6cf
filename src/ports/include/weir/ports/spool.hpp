// Spool: what a camera has to say while nobody may or can hear it, kept in order on disk (lease protocol, rule 8).
//
// One log per (camera, tenure). A log exists only while something waits in it: the first append makes it, advancing
// over its last event removes it. Its writer holds a lock while it has it open, so that another process can neither
// adopt nor drop what somebody still writes; `close` lets go of it and keeps what is there.
// Reading is at least once: `peek` shows the oldest events without taking them, `advance` takes them, and after a crash
// some may be shown again. Bounds are kept by forgetting the oldest events, which is counted. A disk that is full or
// broken makes `append` answer false and raises `disk_trouble` until it works again; nothing else happens.
// Blocks on the disk. One thread.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/lease/row.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir {

enum class EventKind : std::uint8_t { detection, status, error, summary };

// A camera's event before it is stamped with a version.
struct CameraEvent {
  EventKind kind = EventKind::detection;
  std::string topic;
  std::string routing_key;
  std::string event_id;
  std::string payload;  // a JSON object as text, without lease_version
  WallTime captured{};
  friend bool operator==(const CameraEvent&, const CameraEvent&) = default;
};

struct SpoolBacklog {
  std::uint64_t events = 0;
  std::optional<WallTime> newest = {};  // the capture time of the last event
};

// Events that stand one after the other; the first has the number `first`.
struct SpoolPage {
  std::uint64_t first = 0;
  std::vector<CameraEvent> events;
  bool later = false;  // there are some, and this process lacks what it takes to read them now
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
  virtual bool append(const CameraId& camera, const lease::Tenure& tenure, const CameraEvent& event) = 0;
  // The oldest: at least one where any waits, perhaps fewer than there are, otherwise within both limits.
  virtual SpoolPage peek(const CameraId& camera, const lease::Tenure& tenure, size_t events_max, size_t bytes_max) = 0;
  // Everything below number `to` is done with.
  virtual void advance(const CameraId& camera, const lease::Tenure& tenure, std::uint64_t to) = 0;
  virtual void close(const CameraId& camera, const lease::Tenure& tenure) = 0;
  // On return what was appended survives a power failure. Does nothing where nothing is new.
  virtual Status flush() = 0;
  // What `from` left behind now belongs to `to`. `conflict`: its writer is alive, or `to` has something already.
  virtual Status adopt(const CameraId& camera, const lease::Tenure& from, const lease::Tenure& to) = 0;
  // How many events were dropped; those of living writers stay.
  virtual std::uint64_t drop(const CameraId& camera, const lease::Tenure& tenure) = 0;
  virtual std::uint64_t drop_others(const CameraId& camera, const lease::Tenure& keep) = 0;
  // Everybody's; takes no lock: whoever looks is in no writer's way.
  virtual std::vector<SpoolContent> list() const = 0;
  virtual SpoolCounts counts() const = 0;
};

}  // namespace weir
