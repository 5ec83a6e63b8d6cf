#include "stream_checks.hpp"

#include <fmt/format.h>

namespace weir::sim {

using lease::Version;

namespace {

// As an orchestrator is started, and as much longer as the slowest clock makes it.
constexpr TrueTime kGrace = std::chrono::duration_cast<Duration>(300s * 1.06).count();
constexpr TrueTime kRounding = 10;  // of a deadline that was computed by one clock and is looked at by another

// Worker and forwarder share the stream's versions, and are not taken for one another.
SubjectId speaker(const Sender& child) {
  bool worker = child.role == stream::Role::worker;
  return SubjectId::trusted(fmt::format("{}.{}", child.stream, worker ? "worker" : "forwarder"));
}

}  // namespace

// ---- what the checks assume about deadlines ----

TrueTime StreamChecks::right_until(const Sender& child) const {
  auto known = rights_.find({child.stream, child.version});
  return known == rights_.end() ? -1 : known->second + kRounding;
}

bool StreamChecks::may_open(TrueTime now, const Sender& child) const { return now <= right_until(child); }

bool StreamChecks::may_send(TrueTime now, const Sender& child) const { return now <= right_until(child) + kGrace; }

// Whoever had the stream before an operator took it may not have heard of that yet. A store that loses the commit of a
// revocation, and of the grant that followed, renews the lease of the earlier owner: then the grant is of an older epoch.
bool StreamChecks::withdrawn(const Sender& child) const {
  auto revoked = revoked_.find(child.stream);
  if (revoked == revoked_.end()) return false;
  return child.version < revoked->second || child.version.epoch() < store_.state().epoch;
}

// ---- what happens ----

void StreamChecks::heard(const SubjectId& stream, const lease::Owner& owner, Version version, TrueTime until) {
  TrueTime& right = rights_[{stream, version}];
  right = std::max(right, until);
  checks_.believes(stream, owner, version, until);
}

void StreamChecks::revoked(const SubjectId& stream, Version above) { revoked_[stream] = above; }

void StreamChecks::extends(TrueTime now, const HeardRights& heard, const Sender& child, Term term) {
  Instant until = term.valid_until;
  auto known = heard.find({child.stream, child.version});
  if (known == heard.end())
    checks_.fail(now, fmt::format("{}: child {} is given version {:x} by an orchestrator to which the store never "
                                  "said it", speaker(child), child.process, child.version.n));
  else if (until > known->second)
    checks_.fail(now, fmt::format("{}: child {} is extended {} us past what its orchestrator heard of version {:x}",
                                  speaker(child), child.process, (until - known->second).count(), child.version.n));
}

void StreamChecks::told(TrueTime now, const Sender& child) {
  checks_.used(now, speaker(child), child.version, child.process);
  if (auto sender = open_.find(child.process); sender != open_.end()) sender->second.version = child.version;
}

void StreamChecks::opened(TrueTime now, const Sender& child) {
  if (!may_open(now, child))
    checks_.fail(now, fmt::format("{}: child {} connects {} us after its right had ended", speaker(child),
                                  child.process, now - right_until(child)));
  for (const auto& [process, other] : open_) {
    if (process == child.process || other.stream != child.stream || other.role != child.role) continue;
    // A worker's connection closes that of the worker before it, whose forwarder is closed with it. Until then the one
    // before may be kept; and where the store has lost a grant, its owner may not have heard yet that it has no right,
    // and takes the other's place in turn.
    bool forwards = child.role == stream::Role::forwarder;
    bool grant_lost = other.version.epoch() != child.version.epoch();
    bool rival = forwards ? may_send(now, other) : may_open(now, other) && !grant_lost;
    if (rival && !withdrawn(child) && !withdrawn(other))
      checks_.fail(now, fmt::format("{}: child {} connects under version {:x} while child {} sends under {:x}",
                                    speaker(child), child.process, child.version.n, process, other.version.n));
  }
  open_[child.process] = child;
}

void StreamChecks::sent(TrueTime now, const Sender& child) {
  if (!may_send(now, child))
    checks_.fail(now, fmt::format("{}: child {} sends {} us after its right had ended", speaker(child), child.process,
                                  now - right_until(child)));
}

}  // namespace weir::sim
