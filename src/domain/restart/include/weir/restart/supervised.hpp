// Supervised: one child process's life, as the service that started it sees it.
//
//   starting ──up──▶ running ──drained──▶ draining ──▶ gone
//   and from each of these, by `kill`, killed ──▶ gone (unless the kernel holds the process)
//
// The service says what it hears of the process and asks two things: what is wrong with it now (`fault`: then it kills
// it), and, when it has ended, what kind of end that was (`ending`). When to start the next one is CrashLoop's
// decision; whether this machine can start any is that of FailedStarts. Pure: the time and the policy come in with
// every call. One thread.
#pragma once

#include "weir/base/time.hpp"

#include <optional>

namespace weir::restart {

struct Supervision {
  Duration start_grace = 30s;      // until a new process must have answered
  Duration drain_grace = 15s;      // until one that was asked to end must have ended
  Duration silence_limit = 20s;    // one that has not answered for this long is ended
  Duration frozen_after = 2500ms;  // one that has used no processor time meanwhile: for this long
  Duration idle_after = 800ms;     // a process that lives uses processor time within so long
  Duration reaped_after = 2s;      // a process that was killed has ended by then, or the kernel holds it
  int hung_looks = 6;              // in a row; a process that was stopped and goes on needs a moment
  int still_looks = 2;             // in a row
};

enum class Fault {
  late,       // it did not get ready in time
  undrained,  // it did not end within its grace
  hung,       // a thread of it hangs, as it says itself
  frozen,     // it neither answers nor uses processor time
  silent,     // it has not answered for too long, but computes: it may only be slow
  still,      // it answers, but nothing moves in it
};

// What kind of end it was, of a process that has ended.
struct Ending {
  bool crash = false;         // the service had not asked it to end
  bool failed_start = false;  // it never got ready
};

class Supervised {
 public:
  enum class Phase { starting, running, draining };
  // What the process said of itself when it was asked.
  struct Look {
    bool hung = false;
    bool still = false;
  };

  explicit Supervised(Instant started = {}) : started_(started), heard_(started) {}

  // The process is ready; false where that was known.
  bool up(Instant now);
  void answered(Instant now, Look look);
  // The process was asked and did not answer; `cpu_time` is what it has used in its life.
  void unanswered(Instant now, Duration cpu_time, const Supervision& policy);
  // The process was asked to end.
  void drained(Instant now);
  // Marks the process as killed; false where it was killed before.
  bool kill(Instant now, std::optional<Fault> why = {});
  // The service itself was stopped for so long and heard nobody: that time does not count as the process's silence.
  void overslept(Duration slept);

  // Why the process must be killed now; nothing where it was killed already.
  std::optional<Fault> fault(Instant now, const Supervision& policy) const;
  Ending ending(int exit_code) const;
  // The process was killed and does not end: only the kernel can end it.
  bool held_by_kernel(Instant now, const Supervision& policy) const {
    return killed_at_ && now >= *killed_at_ + policy.reaped_after;
  }

  Phase phase() const { return phase_; }
  bool killed() const { return killed_at_.has_value(); }
  bool running() const { return phase_ == Phase::running && !killed(); }
  std::optional<Fault> killed_for() const { return killed_for_; }
  Instant started() const { return started_; }
  // Time since the process's last answer; 0 while it answers.
  Duration silent_for(Instant now) const { return silent_cpu_ ? now - heard_ : Duration(0); }
  bool silent() const { return silent_cpu_.has_value(); }
  Duration since_heard(Instant now) const { return now - heard_; }

 private:
  Phase phase_ = Phase::starting;
  Instant started_, heard_;
  std::optional<Instant> killed_at_;
  std::optional<Fault> killed_for_;
  std::optional<Duration> silent_cpu_;  // its processor time when it was last found silent
  Instant silent_since_{};              // since when that has not changed
  bool idle_ = false;                   // it was found so again, later
  int hung_looks_ = 0, still_looks_ = 0;
};

}  // namespace weir::restart
