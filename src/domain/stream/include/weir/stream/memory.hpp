// Memory: what must survive a restart of the orchestrator of one stream: the session and its publisher, the counts of
// restarts, why it is degraded, which versions were given to whom, and the operator's orders.
//
// Times are kept relative to the moment of remembering, because an Instant means nothing after a reboot; the time until
// it is recalled does not count. Settings and children are not in it: the shell reads the settings again and finds the
// children. Two states remembered at the same moment are equal iff nothing changed that would have to be stored. The
// JSON holds the publisher's query, a secret: whoever stores it keeps it from other users. Plain values and pure
// functions; any thread.
#pragma once

#include "weir/stream/state.hpp"

namespace weir::stream {

struct ChildMemory {
  lease::Version given{};
  restart::RestartWindow window = {};  // Instant{} is the moment of remembering
  std::string problem = {};
  friend bool operator==(const ChildMemory&, const ChildMemory&) = default;
};
struct Memory {
  StreamId id = {};
  std::string run_id = {};
  Duration session_age{};
  bool ending = false;                   // the session was being wound down
  Source source = {};
  bool live = false;
  std::optional<Duration> gone_for = {};
  lease::Version version{};              // of the lease that may still be ours
  bool leased = false;
  ChildMemory worker = {}, forwarder = {};
  Orders orders = {};
  std::string degraded = {};
  std::string last_error = {};
  friend bool operator==(const Memory&, const Memory&) = default;
};

Memory remember(const State& state, Instant now);
// A state that waits for ChildrenFound.
State recall(const Memory& memory, Instant now);

json::object write_memory(const Memory& memory);
Result<Memory> read_memory(const json::value& v);

}  // namespace weir::stream
