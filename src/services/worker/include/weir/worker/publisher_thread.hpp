// PublisherThread: a publisher with the thread, the loop, the bus and the spool that belong to it.
//
// `publisher` may be used from any thread as long as this lives. End with `flush_and_stop`; the destructor waits for
// the thread, and where `flush_and_stop` was not called it puts everything that waits on disk at once. A disk that
// hangs holds the thread: then it is `stuck`, and nothing is published for any camera.
#pragma once

#include "weir/worker/publisher.hpp"
#include "weir/worker/pulse.hpp"

#include <thread>

namespace weir::worker {

class PublisherThread {
 public:
  using BusFactory = std::function<std::unique_ptr<EventBus>(boost::asio::io_context&)>;

  PublisherThread(const BusFactory& make_bus, std::unique_ptr<Spool> spool, PublisherSettings settings = {},
                  PublisherHooks hooks = {});
  ~PublisherThread();
  PublisherThread(const PublisherThread&) = delete;

  Publisher& publisher() { return publisher_; }
  // Any thread.
  bool stuck() const { return pulse_.late(boot_now()) > Duration(0); }

 private:
  boost::asio::awaitable<void> beat();

  const Duration patience_;
  Pulse pulse_;
  boost::asio::io_context io_{1};
  RealClock clock_;
  const std::unique_ptr<EventBus> bus_;
  const std::unique_ptr<Spool> spool_;
  Publisher publisher_;
  std::thread thread_;
};

}  // namespace weir::worker
