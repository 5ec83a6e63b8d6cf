// SplitBus: publishes through one bus and listens to another: what a runner says goes to the broker, and what it must
// know of leases and cameras comes from the control plane. Loop thread only; both buses outlive it.
#pragma once

#include "weir/ports/event_bus.hpp"

namespace weir::apps {

class SplitBus final : public EventBus {
 public:
  SplitBus(EventBus& says, EventBus& hears) : says_(says), hears_(hears) {}
  boost::asio::awaitable<Result<std::vector<Confirmation>>> publish(std::vector<event::Event> events) override {
    return says_.publish(std::move(events));
  }
  boost::asio::awaitable<Status> subscribe(Subscription subscription,
                                           std::function<bool(const DeliveredEvent&)> each) override {
    return hears_.subscribe(std::move(subscription), std::move(each));
  }

 private:
  EventBus& says_;
  EventBus& hears_;
};

}  // namespace weir::apps
