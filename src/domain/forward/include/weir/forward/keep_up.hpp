// KeepUp: whether a worker that works on every picture keeps up with its stream, and what it does where it does not.
//
// A worker that had to wait for its input is up to date. One that did not lags by the time that its pictures leave later
// than when it last waited. A lag that stays above its limit for a while means that the work is left out (`passing`):
// pictures are handed on as they came. After a rest the worker tries again, and rests twice as long whenever the try
// failed soon. Pure; one thread.
#pragma once

#include "weir/base/time.hpp"

#include <algorithm>
#include <optional>

namespace weir::forward {

class KeepUp {
 public:
  struct Limits {
    Duration lag_max = 1500ms;
    Duration patience = 3s;     // above it
    Duration rest = 60s;        // the first one
    Duration rest_max = 16min;
    Duration proof = 5min;      // of work without a rest: the next rest is a first one again
  };
  KeepUp() : KeepUp(Limits{}) {}
  explicit KeepUp(Limits limits) : limits_(limits), rest_(limits.rest) {}

  // Another connection of the input: its times have nothing to do with those before.
  void begin_input() {
    prompt_.reset();
    late_since_.reset();
  }
  // A picture that is shown at `pts` was worked on and leaves now. `waited`: for the input, since the last picture left.
  void left(Duration pts, Instant now, bool waited) {
    if (rests_until_) return;  // until a keyframe comes, pictures go on being worked on
    Duration took = now.time_since_epoch() - pts;
    if (!prompt_ || waited || took < *prompt_) prompt_ = took;
    lag_ = took - *prompt_;
    if (lag_ <= limits_.lag_max) late_since_.reset();
    else if (!late_since_) late_since_ = now;
    if (late_since_ && now - *late_since_ >= limits_.patience) give_way(now);
  }
  // Whether pictures are handed on as they came.
  bool passing(Instant now) {
    if (rests_until_ && now >= *rests_until_) {
      rests_until_.reset();
      works_since_ = now;
    }
    return rests_until_.has_value();
  }
  // During a rest: the lag that led to it.
  Duration lag() const { return lag_; }

 private:
  void give_way(Instant now) {
    if (!works_since_ || now - *works_since_ >= limits_.proof) rest_ = limits_.rest;
    rests_until_ = now + rest_;
    rest_ = std::min(rest_ * 2, limits_.rest_max);
    begin_input();
  }

  Limits limits_;
  Duration rest_;
  Duration lag_{};
  std::optional<Duration> prompt_ = {};  // from a picture's time to its leaving, when the worker was up to date
  std::optional<Instant> late_since_ = {}, rests_until_ = {}, works_since_ = {};
};

}  // namespace weir::forward
