// Turn: what the parts of the brain share while it handles an event: the time, the policy, chance, and the actions that
// come of the event, in their order. The brain has one and passes it to its parts. One thread.
#pragma once

#include "weir/runner/events.hpp"
#include "weir/runner/policy.hpp"

namespace weir::runner {

struct Moment {
  Instant now;
  WallTime wall;
};

class Turn {
 public:
  Turn(Policy numbers, std::uint64_t seed) : policy(std::move(numbers)), random_(seed) {}

  // Returns how long ago the last event was; 0 for the first.
  Duration begin(Moment moment);
  std::vector<Action> take() { return std::exchange(actions_, {}); }

  void act(Action action) { actions_.push_back(std::move(action)); }
  void note(std::string event, std::string text, const CameraId& camera = {}, WorkerNumber worker = 0) {
    act(Note{std::move(event), std::move(text), camera, worker, false});
  }
  void warn(std::string event, std::string text, const CameraId& camera = {}, WorkerNumber worker = 0) {
    act(Note{std::move(event), std::move(text), camera, worker, true});
  }
  // The runner ends; only the first call counts.
  void end(int code, std::string why);
  // Uniform in [0, 1); the same seed gives the same sequence.
  double draw();

  Policy policy;
  Instant now{};
  WallTime wall{};

 private:
  std::uint64_t random_;
  bool ended_ = false;
  std::vector<Action> actions_;
};

}  // namespace weir::runner
