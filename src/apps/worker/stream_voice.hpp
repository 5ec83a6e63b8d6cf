// StreamVoice: publishes what a stream worker sees, in the name of the orchestrator that holds the stream's lease.
//
// It is the shard worker's publisher with one camera, the stream: the right to publish is asked just before an event is
// written, and its version stamped there. Nothing goes to a disk. What cannot be sent waits in memory while the right
// lasts under its version, the newest 256 events; another version, and the end of the process, drop the rest.
// `saw` belongs to one thread; the publisher has its own.
#pragma once

#include "weir/egress/send_right.hpp"
#include "weir/ports/looks.hpp"
#include "weir/worker/camera_status.hpp"
#include "weir/worker/publisher_thread.hpp"
#include "weir/worker/reporter.hpp"

namespace weir::apps {

class StreamVoice {
 public:
  struct Config {
    RunnerId owner;        // the orchestrator
    std::string instance;  // this worker: another one begins to number its pictures anew
    TenantId tenant;
    SiteId site;
    CameraId stream;
  };
  // `right` and `metrics` outlive it.
  StreamVoice(Config config, const worker::PublisherThread::BusFactory& make_bus, const egress::SendRight& right,
              net::Metrics& metrics);

  void saw(const Picture& picture, const Sighting& seen, Duration took);

 private:
  void follow_right();
  double rate(const Picture& picture);
  void measure(Instant now);

  const egress::SendRight& right_;
  worker::Source source_;
  worker::PublisherThread thread_;
  worker::Reporter reporter_;
  // Of whoever calls `saw`.
  struct Told {
    std::int64_t version = 0;
    Instant until{};
    friend bool operator==(const Told&, const Told&) = default;
  } told_;
  struct Counted {
    std::int64_t number = 0;
    Instant at{};
  };
  std::optional<Counted> counted_;
  double fps_ = 0;  // of the stream
  worker::RateMeter looks_;
  Instant measured_{};
};

}  // namespace weir::apps
