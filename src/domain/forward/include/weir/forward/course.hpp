// Course: what a forwarder does next, and when it gives up.
//
// The input and the destination are two independent connections: where one is lost, the other is kept. A lost input
// starts the grace again; when the grace is over, the process ends. A lost destination is tried again, later and
// later, for ever or for as many retries in a row as the policy allows. When the right to send runs out, the
// forwarder waits a while for its extension and sends nothing. `next` says what to do; `step` is told what came of
// it. Pure; any thread.
#pragma once

#include "weir/base/backoff.hpp"
#include "weir/forward/failure.hpp"

#include <optional>
#include <variant>

namespace weir::forward {

struct Policy {
  Duration grace = 30s;  // for an input that is not there
  Backoff retry{.first = 500ms, .cap = 10s, .jitter = 0, .spread = 250ms};
  int retries_max = 0;   // of the destination, in a row; 0: no bound
  Duration calm = 10s;   // a connection that lived this long was a good one: delays start from the beginning
  Duration held_max = 30s;
  friend bool operator==(const Policy&, const Policy&) = default;
};

// What the shell does now. Each but `End` is answered by an event.
struct ConnectInput {
  Duration within{};  // what is left of the grace
};
struct ConnectOutput {};
struct Forward {};    // until one of the two is lost
struct Wait {
  Instant until;
};
struct Hold {         // the right to send is over; both connections are closed
  Instant until;
};
struct End {
  int code = kExitClean;
  std::string_view reason = "stopped";
};
using Task = std::variant<ConnectInput, ConnectOutput, Forward, Wait, Hold, End>;

struct InputConnected {};
struct OutputConnected {};
struct StopAsked {};
struct DeadlinePassed {};
struct Extended {};
struct OutputClosed {};  // by this side, to connect anew at once
struct Waited {};
using Event = std::variant<InputConnected, OutputConnected, Failure, StopAsked, DeadlinePassed, Extended, OutputClosed,
                           Waited>;

struct Link {
  bool up = false;
  Instant since{};  // up, where it is
  int failures = 0; // in a row
  Kind last = Kind::none;
  Instant due{};    // the next try, where it is not
};
struct Course {
  Link input, output;
  Instant grace_until{};
  std::optional<Instant> held_until = {};
  std::optional<End> end = {};
};

// A retry that was scheduled, for the log.
struct Scheduled {
  Failure why;
  int attempt = 0;  // 1 is the first retry
  Duration delay{};
};
struct Step {
  Course next;
  std::optional<Scheduled> scheduled = {};
};

Course begin(Instant now, const Policy& policy);
// What a failure means after the failures before it: a destination that hangs up twice in a row at the stream key
// refuses the key; once, it may have been restarting.
Kind proven(const Course& course, Kind kind);
Task next(const Course& course, Instant now);
// `draw` is uniform in [0, 1).
Step step(Course course, const Event& event, Instant now, const Policy& policy, double draw);

}  // namespace weir::forward
