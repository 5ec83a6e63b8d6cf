// PrintBus: events as JSON lines on standard output, for trying a camera by hand and for benchmarks.
// Publisher's thread only.
#pragma once

#include "common/print.hpp"

#include "weir/ports/event_bus.hpp"

namespace weir::apps {

class PrintBus final : public EventBus {
 public:
  boost::asio::awaitable<Result<std::vector<Confirmation>>> publish(std::vector<event::Event> events) override {
    std::string lines;
    for (const event::Event& event : events) lines += event.payload + "\n";
    print(lines);
    co_return std::vector<Confirmation>(events.size(), Confirmation::accepted);
  }
  boost::asio::awaitable<Status> subscribe(Subscription, std::function<bool(const DeliveredEvent&)>) override {
    co_return Error{Errc::unsupported, "print_bus", "what was printed cannot be subscribed to"};
  }
};

}  // namespace weir::apps
