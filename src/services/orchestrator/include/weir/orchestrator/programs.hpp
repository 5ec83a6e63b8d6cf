// Programs: the commands by which an orchestrator starts a stream's worker and its forwarder.
//
// Both read their settings as a JSON document at /dev/fd/3, so that no URL with a password and no stream key stands in
// arguments or environment. The worker may be anybody's program: an argument vector in which {stream_id}, {run_id},
// {instance_id}, {input_url} and {output_url} are replaced, never a shell line. A program that is not Weir's need not
// know of deadlines: its keeper ends it. Plain values and pure functions; any thread.
#pragma once

#include "weir/lease/decide.hpp"
#include "weir/ports/kept_host.hpp"
#include "weir/stream/events.hpp"

namespace weir::orchestrator {

struct Programs {
  std::string worker;                            // the path of weir-worker
  std::string forwarder;                         // the path of weir-egress
  std::vector<std::string> worker_command = {};  // instead of Weir's own worker
  Secret rtsp_base;                              // "rtsp://127.0.0.1:8554"
  std::string folder;                            // for sockets and the children's output
  std::string log_level = "info";
  boost::json::object worker_settings = {};      // in addition, for every worker; they beat the environment
};

// The JSON array of `worker_command`; an error that says what is wrong with it.
Result<std::vector<std::string>> read_command(std::string_view text);

// Which child of which session a kept process is; stands in its note.
struct ChildNote {
  stream::StreamId stream;
  stream::Role role = stream::Role::worker;
  std::string run_id, instance;
  std::int64_t started_us = 0;  // CLOCK_BOOTTIME
};
std::string write_note(const ChildNote& note);
Result<ChildNote> read_note(std::string_view text);

// What a worker is told of its stream beside its settings.
struct AboutStream {
  lease::Home home;       // where its events belong
  bool for_rtmp = false;  // it has a destination, so that `out` must be what RTMP carries
};

// `valid_until`: the child's first deadline.
KeptSpec worker_spec(const Programs& programs, const stream::StreamId& id, const AboutStream& about,
                     const stream::StartWorker& start, Instant now, Instant valid_until);
KeptSpec forwarder_spec(const Programs& programs, const stream::StreamId& id, const stream::StartForwarder& start,
                        Instant now, Instant valid_until);

}  // namespace weir::orchestrator
