// Every event in every situation: the phase that follows, and that the stream finds its way home from there.
#include "testing.hpp"

namespace weir::stream {
namespace {

using testing::World;

struct Column {
  std::string_view name;
  void (*happen)(World&);
};
void exit_if_there(World& world) {
  if (world.find(Role::worker) != nullptr) world.exit(Role::worker, 40);
  else world.feed(ChildExited{Role::worker, "nobody", 40});
}
void start_if_there(World& world) {
  if (world.find(Role::worker) != nullptr) world.up(Role::worker);
  else world.feed(ChildStarted{Role::worker, "nobody"});
}
void fail_if_starting(World& world) {
  testing::Process* process = world.find(Role::worker);
  bool starting = process != nullptr && !process->up;
  std::string instance = starting ? process->instance : "nobody";
  if (starting) world.processes.clear();
  world.feed(ChildStartFailed{Role::worker, instance, "no room"});
}
const Column kEvents[] = {
    {"ready", [](World& w) { w.ready("s1"); }},
    {"gone", [](World& w) { w.gone("s1"); }},
    {"look: live", [](World& w) { w.look("s1", true); }},
    {"look: absent", [](World& w) { w.look(std::nullopt); }},
    {"forward seen", [](World& w) { w.feed(ForwardSeen{w.state.forwarder.instance, false, "It is refused."}); }},
    {"granted", [](World& w) { w.grant(); }},
    {"held", [](World& w) { w.feed(LeaseHeld{"Another has it."}); }},
    {"lost", [](World& w) { w.feed(LeaseLost{}); }},
    {"silent", [](World& w) { w.feed(LeaseSilent{}); }},
    {"released", [](World& w) { w.release(); }},
    {"started", start_if_there},
    {"start failed", fail_if_starting},
    {"exited", exit_if_there},
    {"nothing found", [](World& w) { w.feed(ChildrenFound{}); }},
    {"settings", [](World& w) { w.feed(SettingsChanged{{.problem = "changed"}}); }},
    {"stop", [](World& w) { w.feed(StopOrdered{}); }},
    {"restart", [](World& w) { w.feed(RestartOrdered{}); }},
    {"forward off", [](World& w) { w.feed(ForwardOrdered{false}); }},
    {"time", [](World& w) { w.pass(1ms); }},
};
static_assert(std::size(kEvents) == std::variant_size_v<Event> + 1, "a look has two columns");

World waiting_for_lease() {
  World world;
  world.ready();
  return world;
}
World waiting_for_process() {
  World world = waiting_for_lease();
  world.grant();
  return world;
}
World in_grace() {
  World world = World::running();
  world.gone();
  return world;
}
World degraded() {
  World world = World::running(false);
  world.exit(Role::worker, 10);
  world.live_through(1s);
  world.exit(Role::worker, 10);
  return world;
}
World stopping() {
  World world = in_grace();
  world.pass(10s);
  return world;
}
World releasing() {
  World world = stopping();
  world.exit(Role::forwarder);
  world.exit(Role::worker);
  return world;
}
World stopped() {
  World world = World::running();
  world.feed(StopOrdered{});
  world.answer();
  return world;
}

// One letter an event: I idle, S starting, R running, T stopping, D stopped.
struct Row {
  std::string_view name;
  World (*make)();
  std::string_view phases;
};
const Row kRows[] = {
    {"idle", [] { return World(); }, "SISIIIIIIIIIIIIIIII"},
    {"starting, waits for the lease", waiting_for_lease, "SSSSSSSSSSSSSSSTSSS"},
    {"starting, waits for the process", waiting_for_process, "SSSSSSSSSSRSSSSTSSS"},
    {"running", [] { return World::running(); }, "RRRRRRSSRSRRSRRTSRR"},
    {"running, in its grace", in_grace, "RRRRRRSSRSRRSRRTSRR"},
    {"degraded", degraded, "SSSSSSSSSSSSSSSTSSS"},
    {"stopping, waits for the forwarder", stopping, "TTTTTTTTTTTTTTTTTTT"},
    {"stopping, waits for the release", releasing, "TTTTTTIITITTTTTTTTT"},
    {"stopped by an operator", stopped, "DDDDDDDDDDDDDDDDSDD"},
};

char letter(Phase phase) { return "ISRTD"[static_cast<size_t>(phase)]; }

TEST(StreamMachine, EveryEventInEverySituation_HasItsPhase_AndTheStreamFindsHome) {
  for (const Row& row : kRows)
    for (size_t i = 0; i < std::size(kEvents); ++i) {
      SCOPED_TRACE(fmt::format("{}: {}", row.name, kEvents[i].name));
      World world = row.make();
      world.pass(1us);
      kEvents[i].happen(world);
      EXPECT_EQ(letter(world.state.phase), row.phases[i]);

      World left = world;
      left.pass(1s);
      left.look(std::nullopt);
      left.calm_down();
      left.live_through(60s);
      EXPECT_EQ(left.state.phase, Phase::idle);
      EXPECT_EQ(left.state.lease.holding, Holding::none);

      world.pass(1s);
      world.look("s1", true);
      world.calm_down();
      world.live_through(60s);
      EXPECT_TRUE(world.state.phase == Phase::running || world.state.phase == Phase::stopped ||
                  !world.state.degraded.empty());
      if (::testing::Test::HasFailure()) return;
    }
}

}  // namespace
}  // namespace weir::stream
