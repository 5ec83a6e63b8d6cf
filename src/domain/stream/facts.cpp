// What each event changes in the facts. Whatever follows from them is settle.cpp's.
#include "stepper.hpp"

namespace weir::stream {

namespace {

std::string_view name_of(Role role) { return kRoleNames[static_cast<size_t>(role)].name; }
std::string capital(Role role) { return role == Role::worker ? "The worker" : "The forwarder"; }

}  // namespace

// ---- the publisher ----

void Stepper::on(const PublisherReady& event) {
  s_.publisher.heard_at = now_;
  publish(event.source);
}

void Stepper::on(const PublisherGone& event) {
  if (!s_.publisher.live) return;
  if (differ(s_.publisher.source.id, event.source_id)) {
    record(Change::gone_ignored, "A publisher that had been replaced is gone; the present one goes on.").source_id =
        event.source_id;
    return;
  }
  s_.publisher.heard_at = now_;
  vanish();
}

void Stepper::on(const Looked& event) {
  s_.out_id = event.out ? event.out_id : "";
  bool foreign = !s_.out_id.empty() && s_.out_id == s_.foreign_out;
  if (event.asked_at >= s_.out_heard_at) s_.out_live = event.out && !foreign;
  if (event.asked_at < s_.publisher.heard_at) return;
  Publisher& known = s_.publisher;
  if (!event.in) {
    missed_ = known.live;
    return vanish();
  }
  if (!known.live || differ(known.source.id, event.in->id)) {
    missed_ = true;
    Source source = *event.in;
    if (source.id == known.source.id) source.query = known.source.query;
    return publish(source);
  }
  if (known.source.id.empty()) known.source.id = event.in->id;
  if (known.source.type.empty()) known.source.type = event.in->type;
}

void Stepper::on(const OutputPublished&) {
  if (s_.worker.life != Life::running) return;
  s_.out_live = true;
  s_.out_heard_at = now_;
}

void Stepper::publish(const Source& source) {
  Publisher& known = s_.publisher;
  bool back = !known.live, other = differ(known.source.id, source.id);
  known.live = true;
  known.gone_since.reset();
  known.source = source;
  if (!s_.session() || s_.phase == Phase::stopping || !(back || other)) return;
  record(Change::session_resumed, back ? "The publisher is back within the grace; the session goes on."
                                       : "Another publisher took over; the session goes on.");
}

void Stepper::vanish() {
  if (!s_.publisher.live) return;
  s_.publisher.live = false;
  s_.publisher.gone_since = now_;
  if (s_.session() && s_.phase != Phase::stopping)
    record(Change::grace_begun, fmt::format("The publisher is gone; the session ends in {} s unless one comes back.",
                                            seconds(policy_.disconnect_grace)));
}

// ---- the lease ----

void Stepper::on(const LeaseGranted& event) {
  StreamLease& lease = s_.lease;
  if (lease.holding == Holding::releasing) return;  // it crossed the release
  bool fresh = event.version > lease.version || lease.holding != Holding::held;
  lease.version = std::max(lease.version, event.version);
  if (lease.silent_since) record(Change::lease_heard, "The control plane answers again; the stream's lease is kept.");
  lease.holding = Holding::held;
  lease.silent_since.reset();
  lease.blocked.clear();
  if (fresh) lease.fresh_asked = false;
  // The shell hands a running child the new version with its next extension.
  for (Role role : {Role::worker, Role::forwarder})
    if (s_.child(role).alive()) s_.child(role).given = std::max(s_.child(role).given, lease.version);
}

void Stepper::on(const LeaseHeld& event) {
  switch (s_.lease.holding) {
    case Holding::none: return;
    case Holding::releasing: s_.lease = {.version = s_.lease.version}; return;
    case Holding::held: return lose_lease(event.why);
    case Holding::unsure:
    case Holding::asking: break;
  }
  for (Role role : {Role::worker, Role::forwarder}) kill(role, "another owner has the stream's lease");
  s_.lease.silent_since.reset();
  if (s_.lease.blocked == event.why) return;
  s_.lease.blocked = event.why;
  s_.last_error = event.why;
  record(Change::lease_blocked, event.why);
}

void Stepper::on(const LeaseLost&) {
  if (s_.lease.holding == Holding::none) return;
  if (s_.lease.holding == Holding::releasing) s_.lease = {.version = s_.lease.version};
  else lose_lease("The stream's lease was lost: another orchestrator may have taken it.");
}

void Stepper::on(const LeaseReleased&) {
  if (s_.lease.holding == Holding::releasing || s_.lease.holding == Holding::none)
    s_.lease = {.version = s_.lease.version};
  else lose_lease("The stream's lease was released by somebody else.");
}

void Stepper::on(const LeaseSilent&) {
  Holding holding = s_.lease.holding;
  if (holding == Holding::none || holding == Holding::releasing || s_.lease.silent_since) return;
  s_.lease.silent_since = now_;
  record(Change::lease_silent, "The control plane does not answer; what runs goes on, nothing is started.").warning =
      true;
}

void Stepper::lose_lease(const std::string& why) {
  s_.lease = {.version = s_.lease.version};
  s_.last_error = why;
  record(Change::lease_lost, why).warning = true;
  for (Role role : {Role::worker, Role::forwarder}) kill(role, "the stream's lease was lost");
}

// ---- the children ----

void Stepper::on(const ChildStarted& event) {
  Child& child = s_.child(event.role);
  if (child.life != Life::starting || child.instance != event.instance) return;
  child.life = Life::running;
  child.since = child.started = now_;
  record(Change::child_started, fmt::format("{} runs.", capital(event.role)), event.role);
}

void Stepper::on(const ChildStartFailed& event) {
  Child& child = s_.child(event.role);
  if (!child.alive() || child.life == Life::running || child.instance != event.instance) return;
  bool asked = child.ending();
  child.started = now_;
  child.life = Life::none;
  child.replace = false;
  child.last_exit.reset();
  if (!asked && s_.session() && s_.phase != Phase::stopping)
    fail(event.role, restart::ExitClass::transient, fmt::format("could not be started: {}", event.why));
}

void Stepper::on(const ChildExited& event) {
  Child& child = s_.child(event.role);
  if (!child.alive() || child.instance != event.instance) return;
  bool asked = child.ending() || s_.phase == Phase::stopping || !s_.session();
  if (child.life == Life::starting) child.started = now_;  // its end was reported before its start
  std::string what = restart::describe_exit(event.code);
  Record& told = record(Change::child_exited, fmt::format("{} {}.", capital(event.role), what), event.role);
  told.exit_code = event.code;
  told.warning = !asked && event.code != restart::kExitClean;
  child.life = Life::none;
  child.replace = false;
  child.last_exit = LastExit{event.code, now_};
  restart::ExitClass how = restart::classify_exit(event.code);
  if (event.role == Role::worker || how == restart::ExitClass::input_not_ready) {
    s_.out_live = false;  // until somebody sees it again
    s_.out_heard_at = now_;
  }
  if (!asked) fail(event.role, how, what);
}

void Stepper::fail(Role role, restart::ExitClass how, const std::string& what) {
  Child& child = s_.child(role);
  auto verdict = child.window.ended(how, now_, now_ - child.started, window_policy(role), draw_.jitter);
  child.problem = fmt::format("{} {}.", capital(role), what);
  s_.last_error = child.problem;
  Duration delay = child.window.next_start - now_;
  switch (verdict) {
    case restart::Verdict::again:
    case restart::Verdict::again_uncounted:
      record(Change::restart_scheduled,
             fmt::format("The {} is started again in {:.1f} s.", name_of(role), seconds(delay)), role)
          .delay = delay;
      return;
    case restart::Verdict::cooling: {
      Record& told = record(Change::forwarder_cooling,
                            fmt::format("{} was restarted {} times within {} minutes and {}; it rests for {} s.",
                                        capital(role), window_policy(role).restarts_max,
                                        window_policy(role).window / 1min, what, seconds(delay)),
                            role);
      told.delay = delay;
      told.warning = true;
      child.problem = told.text;
      return;
    }
    case restart::Verdict::given_up_limit:
    case restart::Verdict::given_up_early: return give_up(role, verdict, what);
  }
}

void Stepper::give_up(Role role, restart::Verdict verdict, const std::string& what) {
  Child& child = s_.child(role);
  std::string_view ends = role == Role::worker ? "a new session begins or an operator restarts the stream"
                                               : "its settings change, a new session begins or an operator switches "
                                                 "forwarding on again";
  child.problem =
      verdict == restart::Verdict::given_up_limit
          ? fmt::format("{} was restarted {} times within {} minutes and {}. It is not started again until {}.",
                        capital(role), window_policy(role).restarts_max, window_policy(role).window / 1min, what, ends)
          : fmt::format("{} {}, as it did before; trying again would not help. It is not started again until {}{}.",
                        capital(role), what, role == Role::worker ? "its settings change, " : "", ends);
  s_.last_error = child.problem;
  if (role == Role::worker) s_.degraded = child.problem;
  record(role == Role::worker ? Change::degraded : Change::child_given_up, child.problem, role).warning = true;
}

void Stepper::on(const ChildrenFound& event) {
  s_.surveyed = true;
  if (event.worker) adopt(Role::worker, *event.worker);
  if (event.forwarder) adopt(Role::forwarder, *event.forwarder);
}

void Stepper::adopt(Role role, const Found& found) {
  Child& child = s_.child(role);
  if (child.alive() && child.instance == found.instance) return;
  if (child.alive()) {  // it can only be a leftover: the present one was started by this process
    record(Change::stale_child_ended, fmt::format("A leftover {} is ended.", name_of(role)), role).instance =
        found.instance;
    return act(KillChild{role, found.instance});
  }
  child.instance = found.instance;
  child.since = now_;
  child.started = std::min(found.started, now_);
  child.given = std::max(child.given, found.version);
  if (!s_.session() && s_.phase == Phase::idle) {  // the session's record is lost, but its child still runs
    s_.run_id = found.run_id;
    s_.session_since = now_;
    s_.lease.holding = Holding::unsure;
    if (!s_.publisher.live) s_.publisher.gone_since = now_;
    move(Phase::starting, "A child of a former orchestrator was found.");
  }
  child.life = Life::running;
  if (found.run_id != s_.run_id) {
    record(Change::stale_child_ended, fmt::format("A {} of another session was found.", name_of(role)), role);
    return kill(role, "it belongs to another session");
  }
  if (role == Role::worker) s_.worker_settings = s_.settings.worker;
  else s_.forward_to = found.destination.value_or(s_.settings.destination);
  record(Change::child_adopted, fmt::format("{} of a former orchestrator goes on.", capital(role)), role);
}

// ---- people ----

void Stepper::on(const SettingsChanged& event) {
  Settings before = std::exchange(s_.settings, event.settings);
  if (before.worker != s_.settings.worker) recover("The worker's settings changed.");
  if (before.destination != s_.settings.destination || before.forward != s_.settings.forward) {
    s_.forwarder.window.forgive();
    s_.forwarder.problem.clear();
  }
}

void Stepper::on(const StopOrdered&) {
  if (s_.session() || s_.publisher.live) s_.orders.stopped = true;
}

void Stepper::on(const RestartOrdered&) {
  s_.orders.stopped = false;
  recover("An operator restarts the stream.");
  for (Role role : {Role::worker, Role::forwarder}) {
    Child& child = s_.child(role);
    child.window.forgive();
    child.problem.clear();
    child.replace = child.alive();
  }
}

void Stepper::on(const ForwardOrdered& event) {
  s_.orders.forward = event.on;
  s_.forwarder.window.forgive();
  s_.forwarder.problem.clear();
}

void Stepper::recover(std::string_view why) {
  if (s_.degraded.empty()) return;
  s_.degraded.clear();
  s_.worker.window.forgive();
  s_.worker.problem.clear();
  record(Change::recovered, std::string(why), Role::worker);
}

}  // namespace weir::stream
