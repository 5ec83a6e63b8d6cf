// EventBus: where events go and where they come from, whatever carries them.
//
// Publishing answers per event, in order: only `accepted` and `duplicate` mean that the event is in the bus for good.
// `stale` means that somebody else speaks for the camera now. An error means that nothing is known about any event of
// the batch: publish all of them again, in the same order; `event_id` makes that harmless.
// A camera's event carries its version and a deadline. An implementation compares the deadline with the time after
// everything that can block and just before the bytes are written; past it nothing is written and the answer is an
// error with the reason "deadline_passed".
// Subscribing delivers at least once, in the bus's order, from `after` on, and can be resumed without a loss.
// One loop thread a bus.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/lease/version.hpp"

#include <boost/asio/awaitable.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace weir {

inline constexpr std::string_view kDetectionsTopic = "detections.topic";
inline constexpr std::string_view kStatusTopic = "status.topic";
inline constexpr std::string_view kControlTopic = "control.topic";

// The right to speak for a camera.
struct EventStamp {
  CameraId camera;
  lease::Version version;
  Instant deadline{};
};

struct OutgoingEvent {
  std::string topic;        // the exchange
  std::string routing_key;
  std::string event_id;
  std::string payload;      // a JSON object as text; holds event_id, and lease_version where there is a stamp
  std::optional<EventStamp> stamp = {};
};

enum class Confirmation { accepted, duplicate, stale };

struct DeliveredEvent {
  std::string cursor;       // resumes after this event
  std::string topic;
  std::string routing_key;
  std::string payload;
  bool after_gap = false;   // events between the one asked for and this are no longer kept
};

struct Subscription {
  std::string pattern = "#";   // AMQP topic pattern over routing keys
  std::string after = {};      // a cursor; "" from now on, "0" from the oldest that is kept
  // Told now and then of a cursor up to which everything that matches was delivered: whoever resumes from the last event
  // of a rare pattern instead has everything since read through again.
  std::function<void(const std::string& cursor)> progress = {};
};

class EventBus {
 public:
  virtual ~EventBus() = default;
  virtual boost::asio::awaitable<Result<std::vector<Confirmation>>> publish(std::vector<OutgoingEvent> events) = 0;
  // Calls `each` until it returns false or the subscription ends; the error says why it ended.
  virtual boost::asio::awaitable<Status> subscribe(Subscription subscription,
                                                   std::function<bool(const DeliveredEvent&)> each) = 0;
};

}  // namespace weir
