// Report: everything that an orchestrator says about what became of a stream, at one place: one log line, its metrics,
// and, for a change of state, the event `publication.<state>`.
//
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

// The event about a stream's change of state; nothing where the record is of something else.
std::optional<event::Event> publication(const stream::State& state, const stream::Record& what, const lease::Home& home,
                                        WallTime now, std::string_view random);

}  // namespace weir::orchestrator
