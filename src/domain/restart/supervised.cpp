#include "weir/restart/supervised.hpp"

#include <utility>

namespace weir::restart {

bool Supervised::up(Instant now) {
  if (phase_ != Phase::starting) return false;
  phase_ = Phase::running;
  heard_ = now;
  return true;
}

void Supervised::answered(Instant now, Look look) {
  // That a draining process answers does not show that it has heard the order to end.
  if (phase_ != Phase::draining) heard_ = now;
  silent_cpu_.reset();
  idle_ = false;
  hung_looks_ = look.hung ? hung_looks_ + 1 : 0;
  still_looks_ = look.still ? still_looks_ + 1 : 0;
}

void Supervised::unanswered(Instant now, Duration cpu_time, const Supervision& policy) {
  bool unchanged = silent_cpu_ == cpu_time;
  idle_ = unchanged && now >= silent_since_ + policy.idle_after;
  if (unchanged) return;
  silent_cpu_ = cpu_time;
  silent_since_ = now;
}

void Supervised::drained(Instant now) {
  phase_ = Phase::draining;
  heard_ = now;
}

bool Supervised::kill(Instant now, std::optional<Fault> why) {
  if (killed_at_) return false;
  killed_at_ = now;
  killed_for_ = why;
  return true;
}

void Supervised::overslept(Duration slept) {
  heard_ += slept;
  silent_cpu_.reset();
}

std::optional<Fault> Supervised::fault(Instant now, const Supervision& policy) const {
  if (killed_at_) return std::nullopt;
  Duration unheard = now - heard_;
  switch (phase_) {
    case Phase::starting:
      if (unheard > policy.start_grace) return Fault::late;
      break;
    case Phase::draining:
      if (unheard > policy.drain_grace) return Fault::undrained;
      break;
    case Phase::running:
      if (hung_looks_ >= policy.hung_looks) return Fault::hung;
      if (idle_ && unheard > policy.frozen_after) return Fault::frozen;
      if (unheard > policy.silence_limit) return Fault::silent;
      if (still_looks_ >= policy.still_looks) return Fault::still;
      break;
  }
  return std::nullopt;
}

Ending Supervised::ending(int exit_code) const {
  bool never_up = phase_ == Phase::starting;
  return {.crash = (exit_code != 0 && phase_ != Phase::draining) || (never_up && !killed()),
          .failed_start = never_up && (!killed() || killed_for_ == Fault::late)};
}

}  // namespace weir::restart
