// RabbitBus: an EventBus over a RabbitMQ broker, with rabbitmq-c.
//
// Each topic is a durable topic exchange. All that is published is kept in one stream, `weir.events`, which a
// subscriber reads from any place on: a cursor is a place in it. An event is accepted when the broker has confirmed
// that the stream and all queues that it is routed to have it on disk. The broker does not know leases: it answers
// neither `stale` nor `duplicate`, and whoever reads a queue of it gets events at least once, each with its version and
// its event_id. The control plane's feed, which gets them through its bridge, is fenced.
//
// One thread owns the connection for publishing and holds the gate: it looks at the clock just before it writes each
// event. Events are written in the order of the calls; when the broker refuses one, everything from the lowest
// unconfirmed one on is written again. While the broker says that it is blocked, nothing is written, and while there is
// no connection a call fails at once. A call that is given up, or whose deadline passes, resets a connection on which
// bytes of it may still be under way, and what the kernel has not sent is thrown away. Each subscription has a
// connection and a thread of its own. No call blocks the loop; the destructor waits for the threads, which may be
// connecting just then. One loop thread a bus; the bus must outlive its running calls.
#pragma once

#include "weir/base/time.hpp"
#include "weir/ports/event_bus.hpp"
#include "weir/rabbitmq/address.hpp"

#include <boost/asio/io_context.hpp>

#include <map>
#include <memory>

namespace weir::rabbitmq {

struct Config {
  Address address;
  std::string ca_file = {};  // authorities (PEM) that are believed besides the system's, for amqps
  // Exchanges that are not named as their topic is.
  std::map<std::string, std::string> exchanges = {};
  Duration connect_within = 2s;
  Duration answer_within = 5s;  // a publication that has no answer by then has failed
  Duration heartbeat = 2s;
  size_t unconfirmed_max = 256;        // events under way
  size_t publications_max = 256;       // calls that wait or are under way
  size_t event_bytes_max = 256 << 10;  // as the control plane's own bus
};

class Sender;
class Listener;

class RabbitBus final : public EventBus {
 public:
  RabbitBus(boost::asio::io_context& io, Config config);
  ~RabbitBus() override;

  boost::asio::awaitable<Result<std::vector<Confirmation>>> publish(std::vector<event::Event> events) override;
  boost::asio::awaitable<Status> subscribe(Subscription subscription,
                                           std::function<bool(const DeliveredEvent&)> each) override;

 private:
  const Config config_;
  boost::asio::io_context& io_;
  std::unique_ptr<Sender> sender_;
  std::vector<std::shared_ptr<Listener>> listeners_;
};

}  // namespace weir::rabbitmq
