// The machine's two languages: what it hears of one published stream (events) and what it wants done (actions).
//
// The shell performs each action, and every outcome comes back as an event. Events are in the past tense, actions
// imperative; all are plain values. Any thread.
#pragma once

#include "weir/lease/version.hpp"
#include "weir/stream/settings.hpp"

#include <array>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace weir::stream {

enum class Role { worker, forwarder };
inline constexpr std::array<json::EnumName<Role>, 2> kRoleNames = {
    {{Role::worker, "worker"}, {Role::forwarder, "forwarder"}}};
constexpr auto& enum_names(Role) { return kRoleNames; }

enum class Phase {
  idle,      // nobody publishes, nothing runs, no lease
  starting,  // somebody publishes; the worker waits for the lease, a version, its delay or its process
  running,   // the worker runs; the forwarder may
  stopping,  // forwarder, worker and lease are given up, in this order
  stopped,   // all are gone. Passes on to idle at once, unless an operator ordered the stop and the publisher is there
};
inline constexpr std::array<json::EnumName<Phase>, 5> kPhaseNames = {
    {{Phase::idle, "idle"}, {Phase::starting, "starting"}, {Phase::running, "running"}, {Phase::stopping, "stopping"},
     {Phase::stopped, "stopped"}}};
constexpr auto& enum_names(Phase) { return kPhaseNames; }

// ---- events: the publisher ----

struct PublisherReady {
  Source source;
};
struct PublisherGone {
  std::string source_id;  // "" where MediaMTX did not say: it may be anybody
};
// What MediaMTX's API showed when it was asked at `asked_at`. What hooks said later than that counts more.
struct Looked {
  Instant asked_at{};
  std::optional<Source> in = {};  // who publishes; nothing where nobody does. Its query is empty
  bool out = false;
  std::string out_id = {};          // the connection that publishes `out`; "" where MediaMTX did not say
};

// ---- events: the lease ----

struct LeaseGranted {       // granted, renewed or rotated
  lease::Version version;
};
struct LeaseHeld {          // another owner has it, or the store refuses it to this one
  std::string why;          // a sentence for a person
};
struct LeaseLost {};        // it was ours, and is no more
struct LeaseSilent {};      // the control plane does not answer: neither ours for certain nor lost
struct LeaseReleased {};

// ---- events: the children ----

struct ChildStarted {       // its process lives
  Role role;
  std::string instance;
};
struct ChildStartFailed {   // there is no process
  Role role;
  std::string instance;
  std::string why;          // a sentence without a secret
};
struct ChildExited {
  Role role;
  std::string instance;
  std::optional<int> code = {};  // 128 + signal; nothing where nobody saw it
};
// A process of this stream that a former orchestrator started and that still lives.
struct Found {
  std::string run_id;
  std::string instance;
  lease::Version version{};               // the highest that it was given
  Instant started{};
  std::optional<Secret> destination = {}; // of a forwarder, where it is known
};
// What a running forwarder says of itself when it is asked.
struct ForwardSeen {
  std::string instance;
  bool flowing = false;      // the destination acknowledges what it is sent
  std::string problem = {};  // why it does not, without a secret; "" while the forwarder only begins
};
// What lives, after `recall`. The shell says this once, after SettingsChanged; until it is heard the machine only takes
// note of other events. Nothing found means that nothing lives.
struct ChildrenFound {
  std::optional<Found> worker = {};
  std::optional<Found> forwarder = {};
};

// ---- events: people and time ----

// The shell merges them anew whenever one of the three speakers changed; where a publisher's query did, before the
// PublisherReady.
struct SettingsChanged {
  Settings settings;
};
struct StopOrdered {};      // holds until a restart is ordered or the publisher stayed away for longer than the grace
struct RestartOrdered {};   // ends a stop, and begins both children anew with fresh windows
struct ForwardOrdered {
  std::optional<bool> on;   // nothing: as the settings say
};
struct TimePassed {};

using Event = std::variant<PublisherReady, PublisherGone, Looked, LeaseGranted, LeaseHeld, LeaseLost,
                           LeaseSilent, LeaseReleased, ChildStarted, ChildStartFailed, ChildExited, ForwardSeen, ChildrenFound,
                           SettingsChanged, StopOrdered, RestartOrdered, ForwardOrdered, TimePassed>;

// ---- actions ----

struct AcquireLease {};          // and keep it renewed from then on
struct NeedFreshVersion {};      // rotate the lease: a child is about to start; answered by LeaseGranted
struct ReleaseLease {
  lease::Version version;        // the last one that was granted; 0 where none was
};
struct StartWorker {             // answered by ChildStarted or ChildStartFailed
  std::string run_id;
  std::string instance;
  lease::Version version;
  WorkerSettings settings;
};
struct StartForwarder {          // likewise
  std::string run_id;
  std::string instance;
  lease::Version version;
  Secret destination;
};
struct StopChild {               // in good order, also one that is only being started; answered by ChildExited
  Role role;
  std::string instance;
};
struct KillChild {               // at once; answered by ChildExited
  Role role;
  std::string instance;
};

enum class Change {
  phase,               // `from` and `to`
  session_resumed,     // the publisher came back within the grace, or another took its place
  grace_begun,         // the publisher is gone
  gone_ignored,        // a publisher that had been replaced is gone
  child_started,
  child_exited,
  restart_scheduled,
  forwarder_cooling,
  child_given_up,
  degraded,
  recovered,           // degraded no more
  child_adopted,
  stale_child_ended,
  child_killed,        // it did not end in time, or has no right any more
  lease_blocked,       // another owner has it
  lease_lost,
  lease_silent,
  lease_heard,         // after the silence
  outage_ended_children,
};
inline constexpr std::array<json::EnumName<Change>, 19> kChangeNames = {
    {{Change::phase, "phase"}, {Change::session_resumed, "session_resumed"}, {Change::grace_begun, "grace_begun"},
     {Change::gone_ignored, "gone_ignored"}, {Change::child_started, "child_started"},
     {Change::child_exited, "child_exited"}, {Change::restart_scheduled, "restart_scheduled"},
     {Change::forwarder_cooling, "forwarder_cooling"}, {Change::child_given_up, "child_given_up"},
     {Change::degraded, "degraded"}, {Change::recovered, "recovered"}, {Change::child_adopted, "child_adopted"},
     {Change::stale_child_ended, "stale_child_ended"}, {Change::child_killed, "child_killed"},
     {Change::lease_blocked, "lease_blocked"}, {Change::lease_lost, "lease_lost"},
     {Change::lease_silent, "lease_silent"}, {Change::lease_heard, "lease_heard"},
     {Change::outage_ended_children, "outage_ended_children"}}};
constexpr auto& enum_names(Change) { return kChangeNames; }

// What happened, for the log, the metrics and the event bus: the shell does all three at the one place where it
// performs this action.
struct Record {
  Change change = Change::phase;
  std::string text = {};               // one sentence
  bool warning = false;
  bool missed = false;                 // no hook told of it: a look at MediaMTX did
  std::string run_id = {};
  std::string source_id = {};
  std::optional<Phase> from = {}, to = {};
  std::optional<Role> role = {};
  std::string instance = {};
  std::optional<int> exit_code = {};
  std::optional<Duration> delay = {};  // until the next start
};

using Action = std::variant<AcquireLease, NeedFreshVersion, ReleaseLease, StartWorker, StartForwarder, StopChild,
                            KillChild, Record>;

}  // namespace weir::stream
