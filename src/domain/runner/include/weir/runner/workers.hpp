// Workers: the runner's worker processes, their health, and the messages to them that are not answered yet.
//
// Each process is supervised (weir/restart/supervised.hpp): one that does not get ready, freezes, hangs or does not end
// is killed, and whoever planned it starts another (shards.hpp). A number names one process for ever. Pure; one thread.
#pragma once

#include "weir/restart/supervised.hpp"
#include "weir/runner/camera.hpp"

namespace weir::runner {

// The configuration that a worker has of a camera.
struct Given {
  std::string version;
  camera::Model model;
};

struct Worker {
  shard::ShardNumber shard = 0;
  int program = 0;                         // the installed weir-worker that it was started from
  restart::Supervised process{};
  std::map<CameraId, Given> sources = {};  // connected there, speaking or not
  bool filling = true;                     // has not had all its cameras yet
  bool looked_at = false;
  CameraId stuck = {};                     // whose thread hangs, as it said last
  std::set<CameraId> streaming = {};       // as it said last
  std::set<CameraId> unseen = {};          // no picture of these went through its detector yet
  std::set<CameraId> behind = {};          // looked at less often than wanted
  std::uint64_t extending = 0;             // the message under way that prolongs its rights
  Instant extend_at{};                     // not before, after a failure

  bool draining() const { return process.phase() == restart::Supervised::Phase::draining; }
  bool starting() const { return process.phase() == restart::Supervised::Phase::starting; }
};

// A message that a worker has not answered yet.
struct Sent {
  WorkerNumber worker;
  Message what;
  std::vector<TellItem> items;
};

class Workers {
 public:
  WorkerNumber start(StartWorker order, std::map<CameraId, Given> sources, Turn& turn);
  void kill(WorkerNumber number, std::string why, Turn& turn, std::optional<restart::Fault> fault = {});
  // Asks a worker to end, which it does when it has no cameras any more; one that cannot be asked yet has nothing to
  // lose.
  void dismiss(WorkerNumber number, Turn& turn);
  // Another weir-worker is installed: workers that were started before are old.
  void install() { ++program_; }
  bool old(const Worker& worker) const { return worker.program != program_; }

  // Sends a message; returns its number, by which the answer names it.
  std::uint64_t tell(WorkerNumber worker, Message what, std::vector<TellItem> items, Turn& turn);
  // The message that this answers; nothing where the brain has given it up.
  std::optional<Sent> answered(std::uint64_t message);
  // A worker that has ended, and the messages that it will not answer: both leave the lists.
  struct Gone {
    Worker worker;
    std::map<std::uint64_t, Sent> unanswered;
  };
  Gone remove(WorkerNumber number);

  // What a worker said of itself.
  void hear(const WorkerHeard& event, const Cameras& cameras, const Turn& turn);
  void hear(const WorkerSilent& event, const Turn& turn);
  void overslept(Duration slept);
  // Kills what must be killed, and says why.
  void check(Turn& turn);

  // Up, and neither draining nor killed.
  bool running(WorkerNumber number) const;
  Worker* find(WorkerNumber number) { return find_in(all, number); }
  const Worker* find(WorkerNumber number) const { return find_in(all, number); }

  std::map<WorkerNumber, Worker> all;

 private:
  WorkerNumber last_ = 0;
  int program_ = 0;
  std::uint64_t messages_ = 0;
  std::map<std::uint64_t, Sent> sent_;
};

// Everything that the brain's parts look at together.
struct Fleet {
  Cameras cameras;
  Workers workers;
};

// The runner's cameras that their workers look at less often than wanted.
int cameras_behind(const Fleet& fleet);
// Whether the camera needs another model than its worker has: a process keeps its detectors, so another model needs
// another process.
bool needs_new_model(const Camera& camera, const Workers& workers);

}  // namespace weir::runner
