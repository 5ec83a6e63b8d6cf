// Drain: how a runner gives its cameras away, because an operator ordered it or because it stops.
//
// Soft: wave after wave of a few cameras; the next wave follows when others have taken this one, or nobody seems to
// have room. Hard, or when the deadline of a stop has come: all at once. What it decides is a mark on the camera
// (`leaving`); the brain silences its worker and releases its lease. A runner that stops ends when it holds nothing any
// more. Pure; one thread.
#pragma once

#include "weir/runner/budgets.hpp"
#include "weir/runner/camera.hpp"

namespace weir::runner {

class Drain {
 public:
  // `room_elsewhere`: others could take cameras, as far as it is known.
  void order(DrainMode mode, bool room_elsewhere, Cameras& cameras, Turn& turn);
  void stop(Instant by, Turn& turn);
  void hear(const BudgetHeard& event, Turn& turn) { budgets_.hear(event, turn); }
  // Another runner has the camera.
  void picked_up(const CameraId& camera) { wave_.erase(camera); }

  bool active() const { return stopping() || mode_ != DrainMode::none; }
  bool stopping() const { return stop_by_.has_value(); }
  // Marks who leaves now. True where it is hard: then the workers are not waited for either.
  bool step(Cameras& cameras, Turn& turn);
  // Ends the runner that was asked to stop and holds nothing any more, or has waited for long enough.
  void end_if_done(const Cameras& cameras, bool workers_left, Turn& turn) const;

 private:
  void next_wave(Cameras& cameras, Turn& turn);
  bool in_a_hurry(const Cameras& cameras, const Turn& turn) const;

  DrainMode mode_ = DrainMode::none;
  std::optional<Instant> stop_by_;
  bool room_elsewhere_ = true;
  std::map<CameraId, bool> wave_;  // drained and not yet picked up by others (true: released)
  Instant wave_since_{};
  Budgets budgets_;
};

}  // namespace weir::runner
