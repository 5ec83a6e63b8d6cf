// A small world around the machine for its tests: it performs the actions, keeps the processes and the lease as they
// really are, and checks after every step what must hold always. One thread.
#pragma once

#include "weir/stream/machine.hpp"
#include "weir/stream/memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace weir::stream::testing {

inline const Secret kDestination{"rtmp://dest.example/app/canary-key"};

inline Settings forwarding_settings() { return {.forward = true, .destination = kDestination}; }

struct Process {
  Role role;
  std::string instance;
  std::string run_id;
  lease::Version version{};
  bool up = false, asked = false, killed = false;
};

class World {
 public:
  State state{.id = StreamId::trusted("demo")};
  Policy policy;
  Instant now{1000s};
  std::vector<Action> last;             // of the last step
  std::vector<Process> processes;       // that live
  std::vector<std::string> orders = {}; // everything but records, in order
  std::int64_t version = 100;           // the last one that the store drew
  bool held = false, silent = false;    // as the machine was told
  bool asked_lease = false, asked_fresh = false, asked_release = false;
  std::map<Role, std::set<std::int64_t>> given;
  std::map<Role, int> starts;

  World() {
    policy.worker.backoff.jitter = policy.forwarder.backoff.jitter = 0;
  }

  void feed(const Event& event) {
    tell_lease(event);
    Phase before = state.phase;
    Step done = step(state, event, now, policy, {0.5, fmt::format("id{}", ++draws_)});
    state = std::move(done.next);
    last = std::move(done.actions);
    for (const Action& action : last) std::visit([&](const auto& each) { perform(each, before); }, action);
    check();
  }

  // ---- what tests say ----
  void ready(const std::string& source = "s1") { feed(PublisherReady{{"rtmpConn", source, {}}}); }
  void gone(const std::string& source = "s1") { feed(PublisherGone{source}); }
  void look(std::optional<std::string> in, bool out = false) {
    feed(Looked{now, in ? std::optional(Source{"rtmpConn", *in, {}}) : std::nullopt, out});
  }
  void grant() {
    asked_lease = asked_fresh = false;
    feed(LeaseGranted{{++version}});
  }
  void release() {
    asked_release = false;
    feed(LeaseReleased{});
  }
  void up(Role role) {
    Process* process = find(role);
    ASSERT_NE(process, nullptr);
    process->up = true;
    feed(ChildStarted{role, process->instance});
  }
  void exit(Role role, std::optional<int> code = 0) {
    Process* process = find(role);
    ASSERT_NE(process, nullptr);
    std::string instance = process->instance;
    std::erase_if(processes, [&](const Process& each) { return each.instance == instance; });
    feed(ChildExited{role, instance, code});
  }
  void pass(Duration time) {
    now += time;
    feed(TimePassed{});
  }
  // Goes on in time, stopping wherever the machine wants to be woken.
  void live_through(Duration time) {
    Instant end = now + time;
    for (auto at = wake_at(state, policy); at && *at <= end; at = wake_at(state, policy)) {
      now = std::max(now, *at);
      feed(TimePassed{});
      answer();
    }
    now = end;
    feed(TimePassed{});
    answer();
  }
  // Answers everything that the machine has asked for, as a healthy world would.
  void answer() {
    for (bool more = true; more;) {
      more = false;
      if (asked_release) release(), more = true;
      if (asked_lease || asked_fresh) grant(), more = true;
      for (Role role : {Role::forwarder, Role::worker}) {
        Process* process = find(role);
        if (process == nullptr) continue;
        if (process->asked || process->killed) exit(role, process->killed ? 137 : 0), more = true;
        else if (!process->up) up(role), more = true;
      }
    }
  }
  // The control plane answers again, and every process obeys.
  void calm_down() {
    answer();
    if (state.lease.silent_since) grant();
    answer();
  }
  // A stream that runs, with its forwarder where `forwarded`.
  static World running(bool forwarded = true) {
    World world;
    if (forwarded) world.feed(SettingsChanged{forwarding_settings()});
    world.ready();
    world.answer();
    world.look("s1", true);
    world.answer();
    EXPECT_EQ(world.state.phase, Phase::running);
    EXPECT_EQ(world.state.forwarder.life, forwarded ? Life::running : Life::none);
    world.orders.clear();
    return world;
  }

  Process* find(Role role) {
    auto found = std::ranges::find_if(processes, [&](const Process& each) { return each.role == role; });
    return found == processes.end() ? nullptr : &*found;
  }
  const Record* recorded(Change change) const {
    for (const Action& action : last)
      if (const auto* each = std::get_if<Record>(&action); each != nullptr && each->change == change) return each;
    return nullptr;
  }
  bool quiet() const {
    return std::ranges::all_of(last, [](const Action& each) { return std::holds_alternative<Record>(each); });
  }

 private:
  void tell_lease(const Event& event) {
    Holding holding = state.lease.holding;
    bool wanted = holding != Holding::releasing;
    if (std::holds_alternative<LeaseGranted>(event)) held = held || wanted, silent = false;
    if (std::holds_alternative<LeaseSilent>(event)) silent = true;
    if (std::holds_alternative<LeaseLost>(event) || std::holds_alternative<LeaseHeld>(event) ||
        std::holds_alternative<LeaseReleased>(event))
      held = false;
    if (const auto* granted = std::get_if<LeaseGranted>(&event); granted != nullptr && held)
      for (const Process& each : processes) given[each.role].insert(granted->version.n);  // by the next extension
  }

  void perform(const AcquireLease&, Phase) {
    asked_lease = true;
    orders.push_back("acquire");
  }
  void perform(const NeedFreshVersion&, Phase) {
    EXPECT_TRUE(held);
    asked_fresh = true;
    orders.push_back("fresh");
  }
  void perform(const ReleaseLease&, Phase) {
    EXPECT_TRUE(processes.empty()) << "the lease is released while a child lives";
    held = asked_lease = asked_fresh = false;
    asked_release = true;
    orders.push_back("release");
  }
  void perform(const StartWorker& order, Phase before) {
    EXPECT_EQ(state.degraded, "");
    begin(Role::worker, order.instance, order.run_id, order.version, before);
  }
  void perform(const StartForwarder& order, Phase before) {
    EXPECT_FALSE(order.destination.empty());
    EXPECT_TRUE(state.out_live);
    begin(Role::forwarder, order.instance, order.run_id, order.version, before);
  }
  void perform(const StopChild& order, Phase) {
    mark(order.role, order.instance).asked = true;
    orders.push_back(order.role == Role::worker ? "stop worker" : "stop forwarder");
  }
  void perform(const KillChild& order, Phase) {
    mark(order.role, order.instance).killed = true;
    orders.push_back(order.role == Role::worker ? "kill worker" : "kill forwarder");
  }
  void perform(const Record& record, Phase) {
    EXPECT_FALSE(record.text.empty());
    EXPECT_EQ(record.text.find("canary"), std::string::npos);
  }

  void begin(Role role, const std::string& instance, const std::string& run_id, lease::Version under, Phase before) {
    EXPECT_EQ(find(role), nullptr) << "two children of one role";
    EXPECT_TRUE(held && !silent) << "a start without a lease";
    EXPECT_NE(before, Phase::stopping) << "a start while stopping";
    EXPECT_TRUE(given[role].insert(under.n).second) << "a version given to two processes";
    EXPECT_TRUE(instances_.insert(instance).second) << "an instance id used twice";
    EXPECT_EQ(run_id, state.run_id);
    EXPECT_FALSE(run_id.empty());
    processes.push_back({role, instance, run_id, under});
    ++starts[role];
    orders.push_back(role == Role::worker ? "start worker" : "start forwarder");
  }
  Process& mark(Role role, const std::string& instance) {
    for (Process& each : processes)
      if (each.role == role && each.instance == instance) return each;
    ADD_FAILURE() << "an order for a process that is not there";
    static Process nobody;
    return nobody = {};
  }
  void check() {
    for (Role role : {Role::worker, Role::forwarder}) {
      auto alive = std::ranges::count_if(processes, [&](const Process& each) { return each.role == role; });
      EXPECT_TRUE(!state.surveyed || alive == (state.child(role).alive() ? 1 : 0));
    }
    bool nothing = state.run_id.empty() && processes.empty();
    switch (state.phase) {
      case Phase::idle: EXPECT_TRUE(nothing || !state.surveyed); break;
      case Phase::stopped: EXPECT_TRUE((nothing || !state.surveyed) && state.orders.stopped); break;
      case Phase::running: EXPECT_EQ(state.worker.life, Life::running); break;
      case Phase::starting:
      case Phase::stopping: EXPECT_FALSE(state.run_id.empty()); break;
    }
    auto at = wake_at(state, policy);
    EXPECT_TRUE(!at || *at > now) << "the machine left something undone that was due";
  }

  int draws_ = 0;
  std::set<std::string> instances_;
};

}  // namespace weir::stream::testing
