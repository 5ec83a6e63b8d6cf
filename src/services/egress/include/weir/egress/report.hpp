// Report: everything a forwarder says about itself: one log event and its metrics for each thing that happens.
//
// A Voice names the process: the egress forwarder, or another that forwards in the same way.
// Called by the forwarder's thread; metrics and standing are read by the endpoint's.
#pragma once

#include "weir/base/log_limit.hpp"
#include "weir/forward/course.hpp"
#include "weir/net/metrics.hpp"
#include "weir/ports/media_copy.hpp"

#include <atomic>

namespace weir::egress {

struct Identity {
  std::string stream, run, instance;
  std::int64_t restarts = 0;  // instances that this run had before
};

struct Voice {
  std::string_view events = "egress";             // the first word of its log events
  std::string_view metrics = "egress_forwarder_";
  std::string_view dropped_metric = "weir_egress_dropped_packets_total";
  std::string_view self = "the forwarder";
  std::string_view input_stage = "rtsp", output_stage = "rtmp";  // of what connecting took
};

class Report {
 public:
  Report(net::Metrics& metrics, const Identity& identity, const Voice& voice = {});

  void input_connecting(int attempt);
  void input_connected(const CopyFacts& facts, Duration took);
  void output_connecting(int attempt);
  void output_connected(Duration took);
  // What the destination has acknowledged so far; the first time that it grows, forwarding has started.
  void flow(forward::Flow::State state, std::uint64_t media_bytes, Instant now);
  // The stream does not flow any more; nothing where it never did.
  void stopped(std::string_view reason, Instant now);
  void retry(const forward::Scheduled& scheduled);
  void dropped(std::uint64_t packets, Instant now);
  void held(Duration at_most);
  void exit(const forward::End& end, const forward::Failure& last);
  const forward::Failure& last_failure() const { return last_; }
  void failed(const forward::Failure& why);
  // What a supervisor that asks is told: whether the stream flows, and what failed last; `none` where nothing did since
  // it flowed. Any thread.
  struct Standing {
    bool flows = false;
    forward::Kind failed = forward::Kind::none;
  };
  Standing standing() const { return {flows_, since_flow_}; }

 private:
  std::string event(std::string_view name) const;
  std::string metric(std::string_view name) const;

  net::Metrics& metrics_;
  const Voice voice_;
  const net::Metrics::Labels run_, instance_;
  net::Gauge& forwarding_;
  net::Counter& bytes_out_;
  net::Counter& dropped_;
  forward::Failure last_;
  std::optional<Instant> started_;   // flowing since
  std::uint64_t bytes_ = 0;          // of this connection of the destination, counted already
  std::uint64_t dropped_before_ = 0;
  LogLimit drops_{10s};
  std::atomic<bool> flows_ = false;
  std::atomic<forward::Kind> since_flow_ = forward::Kind::none;
};

}  // namespace weir::egress
