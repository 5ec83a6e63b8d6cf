// Event: something that happened, as it travels from where it happened to its subscribers.
//
// The payload is written once, at the origin. From there on it is text, and only the stamp is added on the way:
// a worker's queue, its spool, the bus, the log and the feed all carry this one type. What they must know of an event
// stands beside the payload: where it goes (topic and routing key), which it is (event_id), whose it is (tenant), and
// who says it (stamp). A part that knows more, as the log knows the event's sequence number, keeps it beside the Event.
// Plain values; any thread.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/time.hpp"
#include "weir/lease/version.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::event {

inline constexpr std::string_view kDetectionsTopic = "detections.topic";
inline constexpr std::string_view kStatusTopic = "status.topic";
inline constexpr std::string_view kControlTopic = "control.topic";

// What a camera's event is worth to a worker that cannot send everything now. The numbers stand in spool files.
enum class Kind : std::uint8_t { detection = 0, status = 1, error = 2, summary = 3 };

// The right to speak for a camera.
struct Stamp {
  CameraId camera;
  lease::Version version;
  Instant deadline{};  // of this process's clock: not a byte of the event is written past it
  friend bool operator==(const Stamp&, const Stamp&) = default;
};

struct Event {
  std::string topic;  // the exchange
  std::string routing_key;
  std::string event_id;
  std::string payload;             // a JSON object on one line; holds event_id, and lease_version where it is stamped
  Kind kind = Kind::detection;     // only of a camera's event
  WallTime captured{};             // when what it reports happened; only of a camera's event
  TenantId tenant = {};            // who may hear it, empty: those who hear everything; the log sets a publisher's
  std::optional<Stamp> stamp = {};
  friend bool operator==(const Event&, const Event&) = default;
};

// The camera's event with the stamp of this lease. A worker knows the lease only at the last moment, hence this step;
// the event_id does not depend on it, so an event that is sent again under a newer version is recognised.
Event stamped(Event event, Stamp stamp);

// An id that sorts by its time, so that a store's index of recent ids stays small and warm. `random` makes it unique:
// at least 64 bits as hex.
std::string make_event_id(WallTime now, std::string_view random);

}  // namespace weir::event
