// Report: what an orchestrator says about what became of a stream: one log line, its metrics, and, for a change of
// state, the event `publication.<state>`. All three are made from the same record, at one place, so that they agree.
// Loop thread only.
#pragma once

#include "weir/net/metrics.hpp"
#include "weir/ports/stream_plane.hpp"
#include "weir/stream/state.hpp"

namespace weir::orchestrator {

class Report {
 public:
  explicit Report(net::Metrics& metrics);

  // `state` is the stream's after the change.
  void record(const stream::State& state, const stream::Record& what);
  // The stream is gone: its series are not shown any more.
  void forget(const stream::State& state);
  void counts(int streams, int forwarders);

 private:
  void count(const std::string& stream, const stream::Record& what);

  net::Metrics& metrics_;
  net::Gauge& active_streams_;
  net::Gauge& active_forwarders_;
};

// Who makes an event about a stream, where and when; `random` makes its id unique.
struct EventOrigin {
  RunnerId holder;
  lease::Home home;
  WallTime now{};
  std::string random;
};
// The event about a stream's change of state, not stamped yet; nothing where the record is of something else, or of a
// state that a stream reaches without a lease: nobody has the right to say that one.
std::optional<event::Event> publication(const stream::State& state, const stream::Record& what, EventOrigin origin);
// That everything of the stream has ended: the last event of its session, said just before the lease is released.
event::Event last_publication(const stream::State& state, EventOrigin origin);

}  // namespace weir::orchestrator
