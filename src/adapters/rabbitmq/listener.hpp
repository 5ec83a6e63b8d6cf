// Listener: the thread that reads the stream for one subscription, over a connection of its own. Private to this
// folder.
//
// It reads ahead by a bounded number of events, and tells the broker that it has one only after `take` was called for
// it. The first error ends it. `take` belongs to the loop's thread; `stop` does not wait for the thread, the destructor
// does.
#pragma once

#include "connection.hpp"

#include "weir/event/pattern.hpp"

#include <atomic>
#include <mutex>
#include <thread>

namespace weir::rabbitmq {

class Listener {
 public:
  // From `offset` on; none: only what comes from now on. `signal` is called from the thread when there is something
  // new.
  Listener(const Config& config, event::TopicPattern pattern, std::optional<std::int64_t> offset,
           std::function<void()> signal);
  ~Listener();
  Listener(const Listener&) = delete;

  struct News {
    std::vector<DeliveredEvent> events = {};
    std::string progress = {};  // up to here everything that matches was delivered; "" where that is not new
    std::optional<Error> ended = {};
  };
  News take();
  void stop();
  bool ended() const { return ended_; }

 private:
  void run();
  Status read(Connection& connection);
  void put(Connection::Heard heard);

  // Constant after construction.
  const Config& config_;
  const event::TopicPattern pattern_;
  const std::optional<std::int64_t> offset_;
  const std::function<void()> signal_;
  // Any thread.
  std::atomic<bool> stop_ = false, ended_ = false;
  std::atomic<size_t> untaken_ = 0;
  std::mutex mutex_;
  News news_;  // under the mutex
  // The listener's thread only.
  bool first_ = true;
  std::thread thread_;
};

}  // namespace weir::rabbitmq
