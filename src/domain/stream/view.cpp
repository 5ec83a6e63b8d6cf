#include "weir/stream/view.hpp"

namespace weir::stream {

namespace {

std::string_view word(Life life) {
  switch (life) {
    case Life::none: return "none";
    case Life::starting: return "starting";
    case Life::running: return "running";
    case Life::stopping:
    case Life::killed: return "stopping";
  }
  panic("a life without a word", __FILE__, __LINE__);
}

// Why a child that is wanted does not run.
std::string_view waiting(const State& s, const Child& child, Role role, Instant now) {
  if (child.window.given_up) return "given_up";
  if (child.window.cooling(now)) return "cooling";
  if (!s.lease.sure()) return "waiting_for_lease";
  if (!child.window.may_start(now)) return "backing_off";
  if (role == Role::worker) return s.publisher.live ? "waiting_for_lease" : "waiting_for_publisher";
  return s.worker.life == Life::running && s.out_live ? "waiting_for_lease" : "waiting_for_output";
}

json::value null_if_empty(const std::string& text) { return text.empty() ? json::value(nullptr) : json::value(text); }

class Writer {
 public:
  Writer(const State& state, Instant now, WallTime wall) : s_(state), now_(now), wall_(wall) {}

  json::object child(Role role, bool wanted) const {
    const Child& c = s_.child(role);
    json::object out;
    out["state"] = c.alive() ? word(c.life) : wanted ? waiting(s_, c, role, now_) : "off";
    out["instance_id"] = c.alive() ? json::value(c.instance) : json::value(nullptr);
    out["started_at"] = c.alive() ? at(c.started) : json::value(nullptr);
    out["restarts"] = c.window.restarts;
    out["last_exit"] = nullptr;
    if (c.last_exit)
      out["last_exit"] = json::object{{"code", json::write_value(c.last_exit->code)},
                                      {"class", json::write_value(restart::classify_exit(c.last_exit->code))},
                                      {"what", restart::describe_exit(c.last_exit->code)},
                                      {"at", at(c.last_exit->at)}};
    bool delayed = wanted && !c.alive() && !c.window.given_up && c.window.next_start > now_;
    out["next_start_at"] = delayed ? at(c.window.next_start) : json::value(nullptr);
    out["problem"] = null_if_empty(c.problem);
    return out;
  }

  json::object forward() const {
    json::object out = child(Role::forwarder, s_.want_forwarder());
    out["enabled"] = s_.forwarding();
    out["ordered"] = json::write_value(s_.orders.forward);
    bool stuck = s_.forwarder.life == Life::running && s_.flows && !*s_.flows;
    if (stuck) out["state"] = s_.forwarder.problem.empty() ? "connecting" : "retrying";
    out["destination"] = null_if_empty(show_destination(s_.settings.destination));
    const auto& window = s_.forwarder.window;
    out["cooling_until"] = window.cooling(now_) ? at(*window.cooling_until) : json::value(nullptr);
    return out;
  }

  json::object worker() const {
    json::object out = child(Role::worker, s_.want_worker() || (s_.session() && !s_.degraded.empty()));
    const WorkerSettings& used = s_.worker.alive() ? s_.worker_settings : s_.settings.worker;
    out["mode"] = json::write_value(used.mode);
    out["max_fps"] = used.max_fps;
    // Changed settings wait for the worker's next start.
    out["restart_needed"] = s_.worker.alive() && s_.worker_settings != s_.settings.worker;
    return out;
  }

  json::object lease() const {
    bool held = s_.lease.holding == Holding::held;
    return {{"held", held},
            {"version", held ? json::value(s_.lease.version.n) : json::value(nullptr)},
            {"silent_since", s_.lease.silent_since ? at(*s_.lease.silent_since) : json::value(nullptr)},
            {"blocked", null_if_empty(s_.lease.blocked)}};
  }

  json::object all() const {
    json::object source{{"type", null_if_empty(s_.publisher.source.type)},
                        {"id", null_if_empty(s_.publisher.source.id)},
                        {"live", s_.publisher.live}};
    return {{"stream_id", s_.id.str()},
            {"state", json::write_value(s_.phase)},
            {"since", at(s_.since)},
            {"run_id", null_if_empty(s_.run_id)},
            {"run_since", s_.session() ? at(s_.session_since) : json::value(nullptr)},
            {"source", std::move(source)},
            {"degraded", null_if_empty(s_.degraded)},
            {"stopped_by_operator", s_.orders.stopped},
            {"worker", worker()},
            {"forward", forward()},
            {"lease", lease()},
            {"last_error", null_if_empty(s_.last_error)},
            {"settings_problem", null_if_empty(s_.settings.problem)}};
  }

 private:
  json::value at(Instant when) const { return json::value(to_iso(wall_ + (when - now_))); }

  const State& s_;
  const Instant now_;
  const WallTime wall_;
};

}  // namespace

json::object write_view(const State& state, Instant now, WallTime wall) { return Writer(state, now, wall).all(); }

}  // namespace weir::stream
