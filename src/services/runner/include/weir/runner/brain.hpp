// Brain: everything a runner decides, as one step function: an event and the time in, actions out.
//
// It asks for leases up to its capacity, pays the site's token before the first dial, plans which cameras share a worker
// (weir/shard), keeps each worker process alive (weir/restart), replaces it where it must be replaced (weir/rollout) and
// hands every camera to exactly one process under a version that nobody was given before (weir/lease). After each event
// it compares what should be with what is and does the next thing for each camera; a camera has at most one message to
// a worker under way, so its actions keep their order. It has no clock, no I/O and no threads: the manager performs the
// actions and reports each outcome as an event, and the simulator does the same with faults in between. One thread.
#pragma once

#include "weir/camera/config.hpp"
#include "weir/lease/holder.hpp"
#include "weir/ports/catalog.hpp"
#include "weir/restart/crash_loop.hpp"
#include "weir/restart/stream_error.hpp"
#include "weir/rollout/rollout.hpp"
#include "weir/shard/plan.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace weir::runner {

using WorkerNumber = int;  // names one process for ever; 0 is none

struct Policy {
  lease::HolderPolicy lease = {};
  rollout::Mode rollout = rollout::Mode::live;
  rollout::Policy rollout_times = {};
  restart::CrashPolicy crashes = {};
  int capacity = 40;              // cameras; the control plane's word beats it
  int shard_size = 12;            // cameras a worker
  int quorum_pct = 80;            // of the cameras that blue delivers, green must deliver as many
  int workers_max = 4;            // shards, those of cameras that must be alone not counted; 0: no bound
  Duration start_grace = 30s;     // until a new worker must have answered
  int failed_starts = 3;          // in a row: no worker starts on this machine
  Duration silence_limit = 20s;   // a worker that has not answered for this long is ended
  Duration frozen_after = 2500ms; // one that has used no processor time meanwhile: for this long
  Duration stall = 4s;            // a worker's threads give up a camera that sends nothing for this long
  Duration overload_after = 10s;  // cameras that are looked at too seldom for this long: the runner takes no more
  Duration poll = 10s;            // a camera that somebody else has is asked for again about this often
  int drain_batch = 4;
  Duration drain_interval = 1s;
  Duration pickup_limit = 10s;    // how long a drained batch is waited for, where others have room
  int unreachable_after = 3;      // failed dials with a cause on this side
  bool spare = true;              // one idle worker is kept ready
  int room() const { return workers_max == 0 ? capacity : std::min(capacity, shard_size * workers_max); }
};

struct Moment {
  Instant now;
  WallTime wall;
};

// A camera as the catalog wants it.
struct Wish {
  camera::Config config;
  std::string version;  // of the configuration
  int crashes = 0;      // workers that this configuration has crashed, anywhere
};

// ---- events ----

struct CamerasListed {
  std::vector<Wish> cameras;                // all that this runner may process
  std::set<CameraId> unreadable = {};       // these too, but what is wanted of them cannot be read: they stay as they are
};
struct FlagsHeard {
  bool cordoned = false;
  DrainMode drain = DrainMode::none;
  int capacity = 0;
  std::optional<int> spare = {};  // cameras that others have room for; unknown where nobody said
};
// From the lease feed: somebody took the camera, or it can be had.
struct LeaseNews {
  CameraId camera;
  bool free = false;
  RunnerId runner = {};
  lease::Version version = {};
};
// Others have these, as the control plane listed them.
struct HoldersHeard {
  std::map<CameraId, lease::Version> others;
};
struct LeasesHeard {
  struct One {
    CameraId camera;
    lease::HolderEvent event;  // Answered or Unanswered
  };
  std::vector<One> answers;
};
struct TokenHeard {
  CameraId camera;
  lease::Version grant;
  bool granted = false;
  Duration retry_after = 1s;
  bool refused = false;  // by the site's budget, not for want of an answer
};
// How many of a site's cameras could be dialled now; nothing where nobody could say.
struct BudgetHeard {
  SiteId site;
  std::optional<double> tokens;
};
struct WorkerUp {
  WorkerNumber worker = 0;
};
struct WorkerGone {
  WorkerNumber worker = 0;
  int code = 0;             // 128 + signal where one ended it
  CameraId culprit = {};    // whose thread crashed, where that is known
};
struct SeenCamera {
  CameraId camera;
  bool streaming = false;
  std::int64_t failures = 0;  // failed dials since it was added
  std::optional<restart::StreamErrorCode> error = {};
  bool inferred = true;       // a picture of it went through the detector
  bool behind = false;        // it is looked at less often than wanted
  Duration frame_age{};       // since its last picture
};
struct WorkerHeard {
  WorkerNumber worker = 0;
  std::vector<SeenCamera> cameras = {};
  CameraId stuck = {};  // whose thread or picture hangs in it: only a new worker ends that
};
// A worker was asked and did not answer.
struct WorkerSilent {
  WorkerNumber worker = 0;
  Duration cpu_time{};  // that it has used so far
};
struct Told {
  std::uint64_t message = 0;
  bool ok = false;
  std::map<CameraId, WallTime> last_capture = {};
};
struct StopAsked {
  Instant deadline;
};
struct LoadHeard {
  bool too_high = false;
  std::string what = {};
};
// Other times than those of the policy; the rest of it stays.
struct TimesChanged {
  lease::HolderPolicy lease;
  Duration poll;
  int drain_batch;
  Duration drain_interval;
};
struct BinaryChanged {};  // another weir-worker lies on the disk now
struct TimePassed {};
using Event = std::variant<CamerasListed, FlagsHeard, LeaseNews, HoldersHeard, LeasesHeard, TokenHeard, BudgetHeard, WorkerUp,
                           WorkerGone, WorkerHeard, WorkerSilent, Told, StopAsked, LoadHeard, TimesChanged,
                           BinaryChanged, TimePassed>;

// ---- actions ----

struct AskLeases {
  std::vector<lease::Question> questions;  // of one operation
};
struct AskToken {
  CameraId camera;
  SiteId site;
  lease::Version grant;
};
struct AskBudget {
  SiteId site;
};
struct StartWorker {
  WorkerNumber worker = 0;
  shard::ShardNumber shard = 0;
  bool standby = false;
  std::vector<camera::Config> sources = {};  // without a lease: standby ones
  std::vector<camera::Model> models = {};    // in use on this runner: loaded before they are needed
};
struct KillWorker {
  WorkerNumber worker = 0;
  std::string why;
};
enum class Message { add, activate, extend, remove, silence, lose, drain };
struct TellItem {
  CameraId camera;
  std::optional<camera::Config> config = {};  // add
  std::optional<lease::Speak> right = {};     // add, activate, extend
  std::optional<WallTime> after = {};         // add, activate: nothing captured up to here is emitted
};
// Every Tell is answered by a Told with its number, a broken one too.
struct Tell {
  WorkerNumber worker = 0;
  std::uint64_t message = 0;
  Message what = Message::extend;
  std::vector<TellItem> items = {};
};
struct ReportCrash {
  CameraId camera;
};
// Recorded by the manager in the log and the metrics.
struct Note {
  std::string event;  // "camera.taken", "worker.crashed" …
  std::string text;
  CameraId camera = {};
  WorkerNumber worker = 0;
  bool warning = false;
};
struct End {
  int code = 0;
  std::string why;
};
using Action = std::variant<AskLeases, AskToken, AskBudget, StartWorker, KillWorker, Tell, ReportCrash, Note, End>;

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
  // TimePassed is due then at the latest.
  Instant wake_at(Instant now) const;
  Summary summary() const;
  const Policy& policy() const { return policy_; }
  // One camera's lease as this runner sees it; null where it does not know the camera.
  const lease::HolderState* holder(const CameraId& camera) const;

 private:
  struct Camera {
    Wish wish;
    bool desired = false;
    lease::HolderState holder = {};
    std::optional<lease::Speak> right = {};
    bool fresh = false;                       // `right`'s version was handed to no process
    bool paid = false, paying = false;
    bool short_of_budget = false;             // its site had no token for it when it last asked
    Instant pay_at{}, try_at{};
    WorkerNumber on = 0;                      // the process that speaks for it
    Instant told_until{};
    std::uint64_t busy = 0;                   // the message under way
    Instant retry_at{};
    std::optional<Instant> silence_asked = {};
    std::optional<WallTime> after = {};
    WallTime granted_at{};                    // up to here others may have spoken
    bool leaving = false;                     // drained away
    bool lost = false;                        // its worker must be told
    bool elsewhere = false;                   // another runner has it, as far as was heard
    lease::Version news = {};                 // of the last word that it can be had, until the store was asked
    std::optional<Instant> handed_over = {};  // since when its one connection is on its way to another worker
    bool letting_go = false;                  // cannot be reached from here
    bool streamed = false;                    // under the present grant
    bool joined = false;                      // a worker has had it under the present grant
    bool few_sessions = false;                // learned
    int crashes = 0;
    int gave_up = 0;
    int missed = 0;                           // looks at its worker that did not show it
    Instant try_reach_until{};
    bool alone() const { return std::max(crashes, wish.crashes) >= 2; }
    Instant answered_at{};                    // by the store, last
    // The store answers about it; while it does not, nobody can be given a fresh version.
    bool answered() const { return holder.failures == 0; }
    bool few() const { return few_sessions || wish.config.max_sessions.value_or(2) < 2; }
  };
  enum class WorkerPhase { starting, running, draining };
  struct Given {  // the configuration that a worker has of a camera
    std::string version;
    camera::Model model;
  };
  struct Worker {
    shard::ShardNumber shard = 0;
    WorkerPhase phase = WorkerPhase::starting;
    bool killed = false;
    Instant killed_at{};
    bool late = false, hung = false;          // why it was killed: it did not get ready, or a thread of it hung
    CameraId stuck = {};
    int stuck_looks = 0;                      // in a row
    std::optional<Duration> silent_cpu = {};  // its processor time when it was last found silent
    Instant silent_since{};                   // since when it has been that
    bool idle = false;                        // found so again, later
    int still_looks = 0;                      // in a row in which all its cameras stood still
    std::set<CameraId> behind = {};           // looked at less often than wanted
    bool filling = true;                      // has not had all its cameras yet
    int binary = 0;
    bool looked_at = false;
    std::set<CameraId> streaming = {};        // as it said last
    std::set<CameraId> unseen = {};           // no picture of these went through its detector yet
    Instant started{}, heard{};
    std::uint64_t extending = 0;
    Instant extend_at{};                      // not before, after a failure
    std::map<CameraId, Given> sources = {};   // connected there, speaking or not
  };
  struct Shard {
    WorkerNumber blue = 0, green = 0;
    rollout::State rollout = {};
    restart::CrashLoop loop = {};
  };
  struct Budget {  // of a site that this runner drains
    double tokens = 0;                       // as heard, less what was let go since
    bool asked = false, told = false;
    Instant ask_at{};
    std::optional<Instant> empty_since = {};
  };
  struct Sent {
    WorkerNumber worker;
    Message what;
    std::vector<TellItem> items;
  };

  // events
  void on(const CamerasListed& event);
  void on(const FlagsHeard& event);
  void on(const TimesChanged& event);
  void on(const LeaseNews& event);
  void on(const HoldersHeard& event);
  void on(const LeasesHeard& event);
  void hear(const LeasesHeard::One& event);
  void ask_about_news(Camera& camera);
  void on(const TokenHeard& event);
  void on(const BudgetHeard& event);
  void on(const WorkerUp& event);
  void on(const WorkerGone& event);
  void on(const WorkerHeard& event);
  void on(const WorkerSilent& event);
  void on(const Told& event);
  void on(const StopAsked& event);
  void on(const LoadHeard& event);
  void on(const BinaryChanged&);
  void on(const TimePassed&) {}

  // leases
  void feed(Camera& camera, const lease::HolderEvent& event);
  void flush_questions();
  void acquire();
  std::string why_not_acquire() const;
  // drains
  void drain();
  bool in_a_hurry() const;
  bool next_may_dial(const Camera& camera);
  bool draining() const { return stop_by_ || drain_ != DrainMode::none; }
  void end_if_done();
  // workers
  WorkerNumber start_worker(shard::ShardNumber shard, bool standby, const std::vector<const Camera*>& cameras);
  void kill(WorkerNumber worker, std::string why);
  void tell(WorkerNumber worker, Message what, std::vector<TellItem> items);
  void tell_aside(WorkerNumber worker, Message what, std::vector<TellItem> items);  // not the cameras' own next step
  void dismiss(WorkerNumber number);
  void check_health();
  std::string what_ails(const Worker& worker) const;
  bool stands_still(const WorkerHeard& event) const;
  void check_load();
  int cameras_behind() const;
  void check_starts(const Worker& gone, int code);
  bool cannot_start() const;
  void offer_cameras();
  void workers_start();
  void keep_spare();
  shard::ShardNumber free_label() const;
  bool running(WorkerNumber number) const;
  // shards
  void plan();
  void man_shards();
  void take_spare(shard::ShardNumber number);
  void roll(shard::ShardNumber number, Shard& shard, const rollout::Event& event);
  void roll_out();
  bool needs_rollout(shard::ShardNumber number, const Shard& shard) const;
  bool green_ready(const Shard& shard) const;
  bool shows(const Worker& green, const CameraId& camera) const;
  void learn_sessions(const WorkerHeard& event, const std::set<CameraId>& streamed);
  void leave_shard(WorkerNumber worker, bool crash, Duration lived);
  void detach_ended();
  void compare_with(const WorkerHeard& event);
  // cameras
  void step(Camera& camera);
  bool heard_just_now(Camera& camera);
  void take_away(Camera& camera, Message how);
  void hand_over(Camera& camera, WorkerNumber to);
  void silence_failed(Camera& camera, WorkerNumber worker);
  bool may_have(const Camera& camera) const;
  bool assigned_to(const CameraId& camera, shard::ShardNumber shard) const;
  bool needs_new_model(const Camera& camera) const;
  WorkerNumber target_of(const Camera& camera) const;
  bool waits_for_green(const Camera& camera, const Shard& shard) const;
  void extend_leases();
  void check_seen(Camera& camera, const SeenCamera& seen);
  CameraPhase phase_of(const Camera& camera) const;

  void note(std::string event, std::string text, const CameraId& camera = {}, WorkerNumber worker = 0,
            bool warning = false);
  double draw();

  Policy policy_;
  BootId boot_;
  RunnerId runner_;
  std::uint64_t random_;
  Moment moment_{};
  std::vector<Action> actions_;
  std::vector<lease::Question> questions_;

  std::map<CameraId, Camera> cameras_;
  std::map<WorkerNumber, Worker> workers_;
  std::map<shard::ShardNumber, Shard> shards_;
  shard::Assignment assignment_;
  WorkerNumber spare_ = 0;
  restart::CrashLoop spare_loop_;
  std::map<std::uint64_t, Sent> sent_;
  std::uint64_t messages_ = 0;
  WorkerNumber last_worker_ = 0;
  int binary_ = 0;

  bool listed_ = false;            // the catalog was seen at least once
  bool cordoned_ = false;
  DrainMode drain_ = DrainMode::none;
  bool room_elsewhere_ = true;              // as far as it is known
  std::string overload_;                    // of the machine
  std::optional<Instant> behind_since_;     // cameras are looked at too seldom
  bool keeps_up_ = true;
  int failed_starts_ = 0;          // workers in a row that ended before they answered
  Instant failed_start_at_{}, offer_at_{};
  std::optional<Instant> stop_by_;
  std::map<CameraId, bool> wave_;  // drained and not yet picked up by others (true: released)
  Instant wave_since_{};
  std::map<SiteId, Budget> budgets_;  // while it drains
  bool ended_ = false;
};

}  // namespace weir::runner
