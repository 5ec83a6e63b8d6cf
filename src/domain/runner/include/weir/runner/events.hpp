// The brain's two languages: what it hears (events) and what it wants done (actions).
//
// The manager performs each action and reports what came of it as an event; the simulator does the same with faults in
// between. Events are in the past tense, actions imperative; all are plain values. Any thread.
#pragma once

#include "weir/camera/config.hpp"
#include "weir/lease/holder.hpp"
#include "weir/restart/stream_error.hpp"
#include "weir/runner/drain_mode.hpp"
#include "weir/shard/plan.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace weir::runner {

using WorkerNumber = int;  // names one process for ever; 0 is none

// A camera as the catalog wants it.
struct Wish {
  camera::Config config;
  std::string version;  // of the configuration
  int crashes = 0;      // workers that this configuration has crashed, anywhere
};

// ---- events ----

struct CamerasListed {
  std::vector<Wish> cameras;           // all that this runner may process
  std::set<CameraId> unreadable = {};  // these too, but what is wanted of them cannot be read: they stay as they are
};
struct FlagsHeard {
  bool cordoned = false;
  DrainMode drain = DrainMode::none;
  int capacity = 0;
  std::optional<int> spare = {};  // cameras that others have room for; unknown where nobody said
};
// From the lease feed: an owner took the camera, or the camera is free.
struct LeaseNews {
  CameraId camera;
  bool free = false;
  RunnerId runner = {};
  lease::Version version = {};
};
// Cameras that other runners hold, as the control plane listed them.
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
// How many of a site's cameras could be dialled now; nothing where the control plane did not answer.
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
// New times for the policy; the rest of the policy stays.
struct TimesChanged {
  lease::HolderPolicy lease;
  Duration poll;
  int drain_batch;
  Duration drain_interval;
};
struct BinaryChanged {};  // another weir-worker lies on the disk now
struct TimePassed {};
using Event = std::variant<CamerasListed, FlagsHeard, LeaseNews, HoldersHeard, LeasesHeard, TokenHeard, BudgetHeard,
                           WorkerUp, WorkerGone, WorkerHeard, WorkerSilent, Told, StopAsked, LoadHeard, TimesChanged,
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
// Every Tell is answered by a Told with its number, also one that did not reach the worker.
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

}  // namespace weir::runner
