// Random sequences of events. The world checks after every step that there are never two children of a role, that none
// is started without a lease, under a used version or while stopping; here is what holds of whole sequences.
#include "testing.hpp"

namespace weir::stream {
namespace {

using testing::World;

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
  int below(int n) { return static_cast<int>(next() % static_cast<std::uint64_t>(n)); }
  bool one_in(int n) { return below(n) == 0; }
  template <class T>
  const T& of(const std::vector<T>& all) {
    return all[static_cast<size_t>(below(static_cast<int>(all.size())))];
  }

 private:
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

const std::vector<std::optional<int>> kCodes = {0, 10, 20, 30, 40, 50, 60, 70, 137, 139, 1, std::nullopt};
const std::vector<std::string> kSources = {"s1", "s2", "s3", ""};

void late_gone_of_an_old_source(World& world, Chance& chance) {
  const std::string present = world.state.publisher.source.id, old = chance.of(kSources);
  if (!world.state.publisher.live || present.empty() || old.empty() || present == old) return;
  Phase before = world.state.phase;
  world.pass(0s);
  Memory was = remember(world.state, world.now);
  world.gone(old);
  EXPECT_TRUE(world.quiet());
  EXPECT_EQ(world.state.phase, before);
  EXPECT_EQ(remember(world.state, world.now), was);
}

void processes_move(World& world, Chance& chance) {
  Role role = chance.one_in(2) ? Role::worker : Role::forwarder;
  testing::Process* process = world.find(role);
  if (process == nullptr) return world.feed(ChildExited{role, "nobody", chance.of(kCodes)});
  if (!process->up && chance.one_in(6)) {
    std::string instance = process->instance;
    std::erase_if(world.processes, [&](const testing::Process& each) { return each.instance == instance; });
    return world.feed(ChildStartFailed{role, instance, "no room"});
  }
  if (!process->up) return world.up(role);
  if (process->killed || process->asked || chance.one_in(3)) world.exit(role, chance.of(kCodes));
}

void lease_moves(World& world, Chance& chance) {
  switch (chance.below(8)) {
    case 0: return world.feed(LeaseLost{});
    case 1: return world.feed(LeaseHeld{"Another has it."});
    case 2: return world.feed(LeaseSilent{});
    case 3: return world.asked_release ? world.release() : world.feed(LeaseReleased{});
    case 4: return world.feed(LeaseGranted{{world.version}});  // a renewal
    default:
      if (world.asked_release) return world.release();
      if (world.asked_lease || world.asked_fresh || chance.one_in(4)) world.grant();
  }
}

void people_move(World& world, Chance& chance) {
  switch (chance.below(6)) {
    case 0: return world.feed(StopOrdered{});
    case 1: return world.feed(RestartOrdered{});
    case 2: return world.feed(ForwardOrdered{chance.one_in(2)});
    case 3: return world.feed(ForwardOrdered{std::nullopt});
    default: {
      Settings settings = chance.one_in(3) ? Settings{} : testing::forwarding_settings();
      if (chance.one_in(3)) settings.destination = Secret("rtmp://other.example/app/canary-2");
      settings.worker.max_fps = 1 + chance.below(3);
      return world.feed(SettingsChanged{settings});
    }
  }
}

// The orchestrator is replaced by another, which finds what lives.
void restart_orchestrator(World& world) {
  Settings settings = world.state.settings;
  auto memory = read_memory(write_memory(remember(world.state, world.now)));
  ASSERT_TRUE(memory);
  world.state = recall(*memory, world.now);
  world.held = world.silent = world.asked_lease = world.asked_fresh = world.asked_release = false;
  world.feed(SettingsChanged{settings});
  ChildrenFound found;
  for (testing::Process& each : world.processes) {
    each.up = true;
    each.asked = each.killed = false;
    Found process{each.run_id, each.instance, each.version, world.now, {}};
    (each.role == Role::worker ? found.worker : found.forwarder) = process;
  }
  world.feed(found);
}

void something(World& world, Chance& chance) {
  switch (chance.below(20)) {
    case 0:
    case 1: return world.ready(chance.of(kSources));
    case 2:
    case 3: return world.gone(chance.of(kSources));
    case 4: return late_gone_of_an_old_source(world, chance);
    case 5: return world.look(chance.of(kSources), chance.one_in(2));
    case 6: return world.look(chance.one_in(2) ? std::nullopt : std::optional<std::string>("s1"), true);
    case 7: return world.feed(ForwardSeen{world.state.forwarder.instance, chance.one_in(2), "It is refused."});
    case 8:
    case 9:
    case 10:
    case 11: return processes_move(world, chance);
    case 12:
    case 13:
    case 14: return lease_moves(world, chance);
    case 15: return people_move(world, chance);
    case 16: return chance.one_in(6) ? restart_orchestrator(world) : world.feed(TimePassed{});
    case 17: return world.answer();
    default: return world.pass(Duration(1ms) * chance.below(chance.one_in(10) ? 400'000 : 4'000));
  }
}

TEST(StreamMachine, AnySequence_FollowedByQuiet_EndsWhereMediaMtxSays) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Chance chance(seed);
    World world;
    if (chance.one_in(2)) world.feed(SettingsChanged{testing::forwarding_settings()});
    for (int i = 0; i < 120; ++i) {
      something(world, chance);
      if (::testing::Test::HasFailure()) return;
    }
    World absent = world, live = world;
    absent.pass(1s);
    absent.look(std::nullopt);
    absent.calm_down();
    absent.live_through(60s);
    EXPECT_EQ(absent.state.phase, Phase::idle);
    EXPECT_EQ(absent.state.lease.holding, Holding::none);
    EXPECT_TRUE(absent.processes.empty());
    EXPECT_FALSE(absent.asked_release);

    live.pass(1s);
    live.look("s1", true);
    live.calm_down();
    live.live_through(60s);
    live.look("s1", true);
    live.calm_down();
    live.live_through(120s);
    const State& s = live.state;
    EXPECT_TRUE(s.phase == Phase::running || !s.degraded.empty() || (s.phase == Phase::stopped && s.orders.stopped));
    bool forwards = s.forwarding() && !s.forwarder.window.given_up;
    EXPECT_TRUE(s.phase != Phase::running || s.forwarder.life == (forwards ? Life::running : Life::none));
    if (::testing::Test::HasFailure()) return;
  }
}

// Children that end in any way at any time: a worker is started at most seven times in ten minutes before the stream is
// degraded, a forwarder rests for a minute after its limit.
TEST(StreamMachine, ChildrenThatKeepEnding_AreRestartedWithinTheLimits) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Chance chance(seed);
    World world = World::running();
    std::map<Role, std::vector<Instant>> ends;  // those that count
    int cooled = 0;
    for (int i = 0; i < 150 && world.state.degraded.empty(); ++i) {
      world.live_through(Duration(1s) * chance.below(seed % 2 == 0 ? 4 : 150));
      world.look("s1", true);
      world.answer();
      Role role = chance.one_in(seed % 3 == 0 ? 4 : 2) ? Role::worker : Role::forwarder;
      if (world.find(role) == nullptr) continue;
      int code = chance.one_in(4) ? 20 : 40;
      world.exit(role, code);
      if (code == 20) continue;
      auto& counted = ends[role];
      counted.push_back(world.now);
      if (world.recorded(Change::forwarder_cooling)) {
        ++cooled;
        Instant until = world.now + 60s;
        int before = world.starts[Role::forwarder];
        while (world.now < until - 1s) {
          world.live_through(1s);
          world.look("s1", true);
          world.answer();
          ASSERT_EQ(world.starts[Role::forwarder], before);
        }
        counted.clear();
      }
      std::erase_if(counted, [&](Instant at) { return at + 10min <= world.now; });
      ASSERT_LE(counted.size(), 7u) << "the first process and six restarts";
    }
    EXPECT_TRUE(seed % 2 != 0 || !world.state.degraded.empty() || cooled > 0) << "nothing reached its limit";
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace weir::stream
