#include "weir/rollout/rollout.hpp"

namespace weir::rollout {

namespace {

class Stepper {
 public:
  Stepper(State state, Instant now, const Policy& policy, double draw)
      : s_(state), now_(now), policy_(policy), draw_(draw) {}

  void on(const Needed&) {
    if (s_.phase != Phase::steady || now_ < s_.not_before) return;
    enter(Phase::warming, policy_.ready_within);
    actions_.push_back(StartGreen{});
  }

  void on(const GreenReady&) {
    if (s_.phase == Phase::warming) enter(Phase::moving, policy_.ready_within);
  }

  void on(const GreenGone&) {
    if (s_.phase == Phase::warming || s_.phase == Phase::moving) return give_up();
    // Blue is draining already: the shard has no worker and gets one as after any crash.
    if (s_.phase == Phase::draining) s_.phase = Phase::steady;
  }

  void on(const AllMoved&) {
    if (s_.phase != Phase::moving) return;
    s_.failures = 0;
    enter(Phase::draining, policy_.drain_within);
    actions_.push_back(DrainBlue{});
  }

  // While green stands by, the dead blue's cameras need not wait for a quorum: green takes what it has.
  void on(const BlueGone&) {
    if (s_.phase == Phase::steady) return;
    s_.phase = Phase::steady;
    actions_.push_back(PromoteGreen{});
  }

  void on(const StoreAway&) {
    if (s_.phase == Phase::moving) enter(Phase::moving, policy_.ready_within);
  }

  void on(const TimePassed&) {
    if (s_.phase == Phase::steady || now_ < s_.deadline) return;
    if (s_.phase == Phase::warming || s_.phase == Phase::moving) {
      actions_.push_back(KillGreen{});
      give_up();
    } else {
      actions_.push_back(KillBlue{});
      s_.deadline = now_ + policy_.drain_within;
    }
  }

  Step take() { return {s_, std::move(actions_)}; }

 private:
  void enter(Phase phase, Duration limit) {
    s_.phase = phase;
    s_.deadline = now_ + limit;
  }
  void give_up() {
    s_.phase = Phase::steady;
    s_.not_before = now_ + policy_.retry.delay(s_.failures++, draw_);
  }

  State s_;
  const Instant now_;
  const Policy& policy_;
  const double draw_;
  std::vector<Action> actions_;
};

}  // namespace

Step step(State state, const Event& event, Instant now, const Policy& policy, double draw) {
  Stepper stepper(state, now, policy, draw);
  std::visit([&](const auto& each) { stepper.on(each); }, event);
  return stepper.take();
}

}  // namespace weir::rollout
