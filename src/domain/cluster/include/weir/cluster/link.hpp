// Link: the master's connection to one worker, as a machine that knows no socket.
//
//   connecting ── socket open, first state report ──▶ online ── no report for 10 s ──▶ offline
//       │                                              ▲  │                               │
//       │ failed                          first report │  │ error, or closed              │ its pause is over
//       └─────────────────▶ reconnecting ──────────────┘◀─┘◀──────────────────────────────┘
//                             ▲      │  failed: again, after a longer pause
//                             └──────┘                       and from each state, by Closed, closed
//
// Only state reports count as a sign of life: a worker that sends results and never says how it is would be placed
// blindly. A socket without a report in time is hung up, because a frozen machine closes none. `step` answers what the
// shell does next, in order; `due` is when the shell must come back with Late if nothing else happens. The pause before
// a dial grows from 1–3 s to 8–10 s while connections fail or do not last. Pure: time and randomness come in. Plain
// values; one thread.
#pragma once

#include "weir/base/backoff.hpp"

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weir::cluster {

struct LinkPolicy {
  Duration dial_within = 10s;
  Duration report_within = 10s;
  Duration steady_after = 10s;  // a connection that was online for so long makes the next pause short again
  Backoff pause = {.first = 1s, .cap = 8s, .factor = 2.0, .jitter = 0.0, .spread = 2s};
  friend bool operator==(const LinkPolicy&, const LinkPolicy&) = default;
};

enum class LinkState { connecting, online, offline, reconnecting, closed };

struct Link {
  enum class Socket { none, dialling, open };
  LinkState state = LinkState::closed;
  Socket socket = Socket::none;
  Instant due = Instant::max();
  Instant online_since{};
  int failures = 0;  // connections in a row that failed or did not last
  friend bool operator==(const Link&, const Link&) = default;
};

// ---- what happened ----
struct Begun {};                 // the worker is the cluster's from now on
struct Opened {};                // the dial succeeded
struct Reported {};              // a state report came
struct Broken {                  // the dial failed, or the socket is gone
  std::string reason;
  bool error = true;             // false: the worker closed the connection in an orderly way
};
struct Late {};                  // `due` has passed
struct Closed {};                // the worker is the cluster's no more, or this process is not the master any more
using LinkEvent = std::variant<Begun, Opened, Reported, Broken, Late, Closed>;

// ---- what to do next ----
struct Dial {
  friend bool operator==(const Dial&, const Dial&) = default;
};
struct HangUp {
  friend bool operator==(const HangUp&, const HangUp&) = default;
};
struct AskState {  // send `requestState`
  friend bool operator==(const AskState&, const AskState&) = default;
};
// Tell listeners: "worker:" and one of connecting, connected, online, offline, disconnected, websocket_error.
struct Tell {
  std::string_view event;
  std::string reason = {};
  friend bool operator==(const Tell&, const Tell&) = default;
};
using LinkAction = std::variant<Dial, HangUp, AskState, Tell>;

struct LinkStep {
  Link next;
  std::vector<LinkAction> actions = {};
};
// `draw` is uniform in [0, 1).
LinkStep step(Link link, const LinkEvent& event, Instant now, double draw, const LinkPolicy& policy);

}  // namespace weir::cluster
