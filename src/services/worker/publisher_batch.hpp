// Batch: the events of one request: slices of lanes, in the order of each lane. Publisher's thread only.
#pragma once

#include "publisher_lane.hpp"

namespace weir::worker {

// However many cameras wait, each that gets a turn may send this many events.
inline constexpr size_t kShareMin = 8;

struct Publisher::Slice {
  enum class From { edge, disk, memory };
  CameraId camera;
  std::uint64_t serial = 0;
  lease::Version version;
  From from = From::memory;
  size_t events = 0;
  std::uint64_t first = 0;  // the spool's number of the first event
  std::string edge_id = {};
};

struct Publisher::Batch {
  std::vector<event::Event> events;
  std::vector<Slice> slices;
  size_t size = 0;  // the events' number also when they have been handed over
  size_t bytes = 0;
  size_t added = 0;  // of the present lane

  Slice& begin(const Lane& lane, Slice::From from) {
    if (!slices.empty() && slices.back().events == 0) slices.pop_back();
    slices.push_back({lane.camera, lane.serial, lane.version, from});
    return slices.back();
  }

  // Stamps and adds the event, unless the request would become too large by it.
  bool add(Lane& lane, const event::Event& event, size_t bytes_max) {
    if (!events.empty() && bytes + event.payload.size() > bytes_max) return false;
    const event::Event& out = events.emplace_back(stamped(event, {lane.camera, lane.version, lane.valid_until}));
    bytes += out.payload.size() + out.routing_key.size() + out.topic.size() + out.event_id.size();
    lane.in_flight = true;
    if (event.kind == event::Kind::detection) lane.handed = event.captured;
    ++slices.back().events;
    ++added;
    return true;
  }
};

// The request arrived and its content was refused: asking again the same way cannot help.
inline bool is_about_the_events(const Error& error) {
  return error.code == Errc::invalid || error.code == Errc::too_large || error.code == Errc::unsupported ||
         error.code == Errc::unprocessable;
}

}  // namespace weir::worker
