// EventBus: where events go and where they come from, whatever carries them.
//
// Publishing answers per event, in order: only `accepted` and `duplicate` mean that the event is in the bus for good.
// `stale` means that another owner publishes for the camera now. Whoever stores the events fences them: for HttpBus
// that is EventLog in the control plane. An error means that nothing is known about any event of the batch: publish
// all of them again, in the same order; `event_id` makes that harmless. A camera's event carries its version and a
// deadline. An implementation compares the deadline with the time after everything that can block and just before the
// bytes are written; past it nothing is written and the answer is an error with the reason "deadline_passed".
// Subscribing delivers at least once, in the bus's order, from `after` on, and can be resumed without a loss. One
// loop thread a bus.
#pragma once

#include "weir/base/result.hpp"
#include "weir/event/event.hpp"

#include <boost/asio/awaitable.hpp>

#include <functional>
#include <string>
#include <vector>

namespace weir {

enum class Confirmation { accepted, duplicate, stale };

// An event as a subscriber gets it: topic, routing key and payload; everything else stands in the payload.
struct DeliveredEvent : event::Event {
  std::string cursor;      // resumes after this event
  bool after_gap = false;  // events between the one asked for and this are no longer kept
};

struct Subscription {
  std::string pattern = "#";   // AMQP topic pattern over routing keys
  std::string after = {};      // a cursor; "" from now on, "0" from the oldest that is kept
  // Called now and then with a cursor up to which everything that matches was delivered. A subscriber of a rare
  // pattern that resumes from its last event instead makes the bus read everything since that event again.
  std::function<void(const std::string& cursor)> progress = {};
};

class EventBus {
 public:
  virtual ~EventBus() = default;
  virtual boost::asio::awaitable<Result<std::vector<Confirmation>>> publish(std::vector<event::Event> events) = 0;
  // Calls `each` until it returns false or the subscription ends; the error says why it ended.
  virtual boost::asio::awaitable<Status> subscribe(Subscription subscription,
                                                   std::function<bool(const DeliveredEvent&)> each) = 0;
};

}  // namespace weir
