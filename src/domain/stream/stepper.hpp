// Stepper: one step of the machine. `on` takes note of an event (facts.cpp); `settle` compares what is wanted with what
// is there and collects the actions (settle.cpp). Made for one step and thrown away. One thread.
#pragma once

#include "weir/stream/machine.hpp"

namespace weir::stream {

class Stepper {
 public:
  Stepper(State state, Instant now, const Policy& policy, const Draw& draw)
      : s_(std::move(state)), now_(now), policy_(policy), draw_(draw) {}

  void on(const PublisherReady& event);
  void on(const PublisherGone& event);
  void on(const Looked& event);
  void on(const LeaseGranted& event);
  void on(const LeaseHeld& event);
  void on(const LeaseLost& event);
  void on(const LeaseSilent& event);
  void on(const LeaseReleased& event);
  void on(const ChildStarted& event);
  void on(const ChildStartFailed& event);
  void on(const ChildExited& event);
  void on(const ForwardSeen& event);
  void on(const ChildrenFound& event);
  void on(const SettingsChanged& event);
  void on(const StopOrdered& event);
  void on(const RestartOrdered& event);
  void on(const ForwardOrdered& event);
  void on(const TimePassed&) {}

  void settle();
  Step take() { return {std::move(s_), std::move(actions_)}; }

 private:
  // Facts.
  void publish(const Source& source);
  void vanish();
  void lose_lease(const std::string& why);
  void adopt(Role role, const Found& found);
  void fail(Role role, restart::ExitClass how, const std::string& what);
  void give_up(Role role, restart::Verdict verdict, const std::string& what);
  void recover(std::string_view why);

  // Consequences.
  bool publisher_there() const;  // or expected back within its grace
  void kill_overdue();
  void end_session_if_over();
  void wind_down();
  void rest();
  void open_session();
  void ask_lease();
  void release();
  void end_unwanted();
  void start_if_due(Role role);
  void start(Role role);
  void stop(Role role);
  void kill(Role role, std::string_view why);

  const restart::WindowPolicy& window_policy(Role role) const {
    return role == Role::worker ? policy_.worker : policy_.forwarder;
  }
  void act(Action action) { actions_.push_back(std::move(action)); }
  void move(Phase to, std::string_view why);
  Record& record(Change change, std::string text, std::optional<Role> role = {});

  State s_;
  const Instant now_;
  const Policy& policy_;
  const Draw& draw_;
  bool missed_ = false;  // no hook told of what this step is about
  std::vector<Action> actions_;
};

}  // namespace weir::stream
