// Brain: everything a runner decides, as one step function: an event and the time in, actions out.
//
// It is made of parts, each with its own state and a header that explains it: Leases (what is asked of the store),
// Payment and Budgets (tokens of the sites), Drain (giving cameras away), Workers and Load (processes and their
// health), Shards (which process has which cameras, and how it is replaced) and the functions of voices.hpp (how the
// one process that speaks for a camera is changed). After each event the brain lets every part compare what should be
// with what is, in the order of `handle`, and then does the next thing for each camera. It has no clock, no I/O and no
// threads: the manager performs the actions and reports each outcome as an event (events.hpp), and the simulator does
// the same with faults in between. One thread.
#pragma once

#include "weir/restart/failed_starts.hpp"
#include "weir/runner/drain.hpp"
#include "weir/runner/leases.hpp"
#include "weir/runner/load.hpp"
#include "weir/runner/shards.hpp"
#include "weir/runner/voices.hpp"

namespace weir::runner {

// ---- what it says about itself ----

enum class CameraPhase { waiting, held, budget, starting, running, leaving };
inline constexpr std::array<json::EnumName<CameraPhase>, 6> kCameraPhaseNames = {
    {{CameraPhase::waiting, "waiting"}, {CameraPhase::held, "held"}, {CameraPhase::budget, "budget"},
     {CameraPhase::starting, "starting"}, {CameraPhase::running, "running"}, {CameraPhase::leaving, "leaving"}}};
constexpr auto& enum_names(CameraPhase) { return kCameraPhaseNames; }

struct CameraView {
  CameraId camera;
  CameraPhase phase = CameraPhase::waiting;
  lease::Version version = {};
  Instant valid_until{};
  WorkerNumber worker = 0;
  shard::ShardNumber shard = -1;
  bool alone = false;
  Duration silent{};  // how long its worker has not answered; 0 while it does
};
struct Summary {
  int desired = 0, owned = 0, pending = 0, shards = 0, workers = 0;
  int behind = 0;          // cameras that are looked at less often than wanted
  int workers_silent = 0;  // that do not answer
  bool acquiring = true;
  std::string why_not = {};  // why it acquires nothing
  bool draining = false;
  std::vector<CameraView> cameras = {};
};

class Brain {
 public:
  // `seed` spreads the runners' retries; `boot` is this process's own.
  Brain(Policy policy, BootId boot, RunnerId runner, std::uint64_t seed);

  std::vector<Action> handle(const Event& event, Moment moment);
  // When the manager must give the brain a TimePassed at the latest.
  Instant wake_at(Instant now) const;
  Summary summary() const;
  const Policy& policy() const { return turn_.policy; }
  // One camera's lease as this runner sees it; null where it does not know the camera.
  const lease::HolderState* holder(const CameraId& camera) const;

 private:
  void on(const CamerasListed& event);
  void on(const FlagsHeard& event);
  void on(const TimesChanged& event);
  void on(const LeaseNews& event);
  void on(const HoldersHeard& event) { leases_.hear(event, fleet_.cameras); }
  void on(const LeasesHeard& event) { leases_.hear(event, fleet_.cameras, turn_); }
  void on(const TokenHeard& event);
  void on(const BudgetHeard& event) { drain_.hear(event, turn_); }
  void on(const WorkerUp& event);
  void on(const WorkerGone& event);
  void on(const WorkerHeard& event);
  void on(const WorkerSilent& event) { fleet_.workers.hear(event, turn_); }
  void on(const Told& event) { hear_told(event, fleet_, turn_); }
  void on(const StopAsked& event) { drain_.stop(event.deadline, turn_); }
  void on(const LoadHeard& event) { load_.hear(event, turn_); }
  void on(const BinaryChanged&);
  void on(const TimePassed&) {}

  std::string why_not_acquire() const;
  bool cannot_start() const;
  void check_load();
  void offer_cameras();
  void check_seen(Camera& camera, const SeenCamera& seen);

  // Does the next thing for one camera, towards the state in which it should be.
  void step(Camera& camera);
  void let_go(Camera& camera);
  bool heard_just_now(Camera& camera);
  CameraPhase phase_of(const Camera& camera) const;

  Turn turn_;
  Fleet fleet_;
  Leases leases_;
  Drain drain_;
  Shards shards_;
  restart::FailedStarts starts_;
  Load load_;
  bool listed_ = false;  // the catalog was seen at least once
  bool cordoned_ = false;
};

}  // namespace weir::runner
