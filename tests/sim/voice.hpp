// Voice: how a simulated worker publishes: the product's publisher, over a clock, a bus and a disk of the simulated
// world.
//
// The publisher's coroutines go on only inside `go_on`, which is called whenever something has reached the process,
// and not while it is stopped. Requests that were written and not answered when the voice is destroyed stay as they
// are: that is how a process dies. One thread.
#pragma once

#include "bell.hpp"

#include "weir/worker/publisher.hpp"

#include <memory>

namespace weir::sim {

class Voice {
 public:
  using Answer = std::function<void(std::vector<Confirmation>)>;
  // What the simulated world does for a voice.
  struct Surroundings {
    WorldClock::World clock;
    std::function<Duration()> blocked;                                 // how long a request waits before it is written
    std::function<void(std::vector<event::Event> events, Answer answer)> send;  // the bytes leave the process now
    std::function<double()> draw;
    bool looks_again = true;  // at the deadline, after having waited
  };

  Voice(Surroundings surroundings, std::unique_ptr<Spool> spool);
  ~Voice();
  Voice(const Voice&) = delete;

  worker::Publisher& publisher() { return publisher_; }
  void silence(const CameraId& camera, std::function<void(std::optional<WallTime> last)> done);
  // Publishes what it may until then, puts the rest on the disk and calls `done`.
  void stop(Instant deadline, std::function<void()> done);
  void go_on();
  std::uint64_t queued() const { return publisher_.counters().queued; }
  std::uint64_t dropped() const;  // of what there was a right to say

 private:
  class WorldBus;
  boost::asio::io_context io_{1};
  const Surroundings surroundings_;
  WorldClock clock_;
  std::unique_ptr<WorldBus> bus_;
  const std::unique_ptr<Spool> spool_;
  worker::Publisher publisher_;
};

}  // namespace weir::sim
