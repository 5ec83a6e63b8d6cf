// What follows from the facts: what is wanted is compared with what is there.
#include "stepper.hpp"

namespace weir::stream {

void Stepper::settle() {
  if (!s_.surveyed) return;
  kill_overdue();
  end_session_if_over();
  if (s_.phase == Phase::stopping) wind_down();
  if (s_.phase == Phase::idle || s_.phase == Phase::stopped) rest();
  if (s_.phase != Phase::starting && s_.phase != Phase::running) return;
  ask_lease();
  end_unwanted();
  start_if_due(Role::worker);
  bool runs = s_.worker.life == Life::running;
  if (runs && s_.phase == Phase::starting) move(Phase::running, "The worker runs.");
  if (!runs && s_.phase == Phase::running) move(Phase::starting, "The worker does not run.");
  start_if_due(Role::forwarder);
}

bool Stepper::publisher_there() const {
  const Publisher& p = s_.publisher;
  return p.live || (p.gone_since && now_ < *p.gone_since + policy_.disconnect_grace);
}

void Stepper::kill_overdue() {
  for (Role role : {Role::worker, Role::forwarder})
    if (s_.child(role).life == Life::stopping && now_ >= s_.child(role).since + policy_.stop_grace)
      kill(role, "it did not end in time");
  if (!s_.lease.silent_since || now_ < *s_.lease.silent_since + policy_.outage_grace) return;
  bool any = false;
  for (Role role : {Role::worker, Role::forwarder}) {
    any = any || (s_.child(role).alive() && s_.child(role).life != Life::killed);
    kill(role, "the control plane was silent for too long");
  }
  if (!any) return;
  s_.last_error = fmt::format("The control plane was silent for {} s; the stream's children were ended.",
                              seconds(policy_.outage_grace));
  record(Change::outage_ended_children, s_.last_error).warning = true;
}

void Stepper::end_session_if_over() {
  if (s_.phase != Phase::starting && s_.phase != Phase::running) return;
  if (s_.orders.stopped) return move(Phase::stopping, "An operator ordered the stop.");
  if (!publisher_there()) move(Phase::stopping, "The publisher stayed away for longer than the grace.");
}

void Stepper::wind_down() {
  for (Role role : {Role::forwarder, Role::worker}) {
    if (!s_.child(role).alive()) continue;
    return stop(role);
  }
  release();
  if (s_.lease.holding != Holding::none) return;
  move(Phase::stopped, "Children and lease are gone.");
  s_.run_id.clear();
  s_.degraded.clear();
  s_.out_live = false;
}

void Stepper::rest() {
  if (s_.phase == Phase::stopped) {
    if (s_.orders.stopped && publisher_there()) return release();
    move(Phase::idle, "The session is closed.");
    s_.orders.stopped = false;
  }
  s_.publisher.gone_since.reset();
  if (!s_.publisher.live) return release();
  if (s_.lease.holding != Holding::releasing) open_session();
}

void Stepper::open_session() {
  s_.run_id = draw_.id;
  s_.session_since = now_;
  s_.degraded.clear();
  s_.last_error.clear();
  for (Role role : {Role::worker, Role::forwarder}) {
    s_.child(role).window.renew();
    s_.child(role).problem.clear();
    s_.child(role).last_exit.reset();
  }
  move(Phase::starting, "A publisher is there.");
}

void Stepper::ask_lease() {
  if (s_.lease.holding != Holding::none && s_.lease.holding != Holding::unsure) return;
  s_.lease.holding = Holding::asking;
  act(AcquireLease{});
}

// Also a lease that was granted after all, when nobody wanted it any more.
void Stepper::release() {
  if (s_.lease.holding == Holding::none || s_.lease.holding == Holding::releasing) return;
  s_.lease = {.holding = Holding::releasing, .version = s_.lease.version};
  act(ReleaseLease{s_.lease.version});
}

void Stepper::end_unwanted() {
  const Child& forwarder = s_.forwarder;
  bool elsewhere = forwarder.alive() && s_.forward_to != s_.settings.destination;
  if (forwarder.replace || !s_.want_forwarder() || elsewhere) stop(Role::forwarder);
  if (s_.worker.replace) stop(Role::worker);
}

void Stepper::start_if_due(Role role) {
  Child& child = s_.child(role);
  if (!s_.ready_for(role) || child.alive() || !s_.lease.sure() || !child.window.may_start(now_)) return;
  if (s_.lease.version > child.given) return start(role);
  if (s_.lease.fresh_asked) return;
  s_.lease.fresh_asked = true;
  act(NeedFreshVersion{});
}

void Stepper::start(Role role) {
  Child& child = s_.child(role);
  child.life = Life::starting;
  child.since = child.started = now_;
  child.instance = draw_.id + (role == Role::worker ? "-w" : "-f");
  child.given = s_.lease.version;
  child.window.started(now_);
  if (role == Role::worker) {
    s_.worker_settings = s_.settings.worker;
    // What is published now is not this worker's.
    s_.foreign_out = s_.out_id;
    s_.out_live = false;
    s_.out_heard_at = now_;
    act(StartWorker{s_.run_id, child.instance, s_.lease.version, s_.settings.worker});
  } else {
    s_.forward_to = s_.settings.destination;
    s_.flows.reset();
    act(StartForwarder{s_.run_id, child.instance, s_.lease.version, s_.settings.destination});
  }
}

void Stepper::stop(Role role) {
  Child& child = s_.child(role);
  if (!child.alive() || child.ending()) return;
  child.life = Life::stopping;
  child.since = now_;
  act(StopChild{role, child.instance});
}

void Stepper::kill(Role role, std::string_view why) {
  Child& child = s_.child(role);
  if (!child.alive() || child.life == Life::killed) return;
  child.life = Life::killed;
  child.since = now_;
  act(KillChild{role, child.instance});
  std::string_view whom = role == Role::worker ? "The worker" : "The forwarder";
  record(Change::child_killed, fmt::format("{} is killed: {}.", whom, why), role).warning = true;
}

void Stepper::move(Phase to, std::string_view why) {
  Phase from = std::exchange(s_.phase, to);
  s_.since = now_;
  Record& told = record(Change::phase, std::string(why));
  told.from = from;
  told.to = to;
}

Record& Stepper::record(Change change, std::string text, std::optional<Role> role) {
  Record out{.change = change, .text = std::move(text), .missed = missed_, .run_id = s_.run_id,
             .source_id = s_.publisher.source.id, .role = role};
  if (role) out.instance = s_.child(*role).instance;
  act(std::move(out));
  return std::get<Record>(actions_.back());
}

}  // namespace weir::stream
