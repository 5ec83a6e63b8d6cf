// StreamChecks: what must be true of published streams after every event, judged with knowledge of the whole world.
//
// A sender is a child of an orchestrator while it is connected: a worker, which publishes `out`, or a forwarder, which
// sends to the destination. It connects only while its right is valid. Connections that stand may outlive it for the
// outage grace; then the media server sees to it that the next owner's take their place. What the checks assume about
// deadlines stands in `may_open` and `may_send` alone.
#pragma once

#include "checks.hpp"

#include "weir/ports/kept_host.hpp"
#include "weir/stream/events.hpp"

namespace weir::sim {

// A child as the checks know it.
struct Sender {
  int process = 0;  // names it among all processes of the world
  SubjectId stream = {};
  stream::Role role = stream::Role::worker;
  lease::Version version = {};  // the highest that it was told
};

// Until when the store's answers, as one process heard them itself, give it a stream under a version: by its own clock.
using HeardRights = std::map<std::pair<SubjectId, lease::Version>, Instant>;

class StreamChecks {
 public:
  StreamChecks(Checks& checks, SimStore& store) : checks_(checks), store_(store) {}

  // An orchestrator heard a yes: its right to the stream really ends then.
  void heard(const SubjectId& stream, const lease::Owner& owner, lease::Version version, TrueTime until);
  // An operator took the stream from whoever had it: `above` is its version since then.
  void revoked(const SubjectId& stream, lease::Version above);
  // An orchestrator starts or extends a child: with nothing but what the store has said to this very process.
  void extends(TrueTime now, const HeardRights& heard, const Sender& child, Term term);
  // The child has heard of its version.
  void told(TrueTime now, const Sender& child);

  void opened(TrueTime now, const Sender& child);  // it connects
  void sent(TrueTime now, const Sender& child);
  void closed(int process) { open_.erase(process); }

 private:
  bool may_open(TrueTime now, const Sender& child) const;
  bool may_send(TrueTime now, const Sender& child) const;
  TrueTime right_until(const Sender& child) const;
  bool withdrawn(const Sender& child) const;

  Checks& checks_;
  SimStore& store_;
  std::map<std::pair<SubjectId, lease::Version>, TrueTime> rights_;
  std::map<SubjectId, lease::Version> revoked_;  // versions below this one were taken from their owners
  std::map<int, Sender> open_;                   // by process
};

}  // namespace weir::sim
