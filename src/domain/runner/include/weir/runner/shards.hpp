// Shards: which worker processes there should be, which cameras each has, and how one process replaces another.
//
// The plan (weir/shard) says which cameras share a worker. Every shard of the plan has one worker, its blue; while that
// is replaced (weir/rollout) a second one, its green. One more worker is kept idle, so that a crash costs no start; it
// has a shard's number as its label, which becomes the number of the shard that takes it. Pure; one thread.
#pragma once

#include "weir/restart/crash_loop.hpp"
#include "weir/runner/workers.hpp"

namespace weir::runner {

class Shards {
 public:
  void plan(const Cameras& cameras, const Turn& turn);
  // Every shard of the plan gets a worker; a worker without a shard is dismissed.
  void man(Fleet& fleet, Turn& turn);
  void keep_spare(bool wanted, Fleet& fleet, Turn& turn);
  // Begins the rollouts that are needed, and takes each one that is under way a step further.
  void roll_out(Fleet& fleet, Turn& turn);
  // A worker has ended after `lived`; `crash`: the runner had not asked it to end.
  void worker_gone(WorkerNumber worker, bool crash, Duration lived, Fleet& fleet, Turn& turn);
  // Recorders allow few connections: a camera that refuses green while blue streams, or drops blue when green dials,
  // is handed over in order. A camera that no worker reaches tells nothing about its sessions. `streamed`: what this
  // worker streamed before.
  void learn_sessions(const WorkerHeard& event, const std::set<CameraId>& streamed, Fleet& fleet, Turn& turn);

  // The worker that should speak for the camera now; 0 where there is none yet.
  WorkerNumber target_of(const Camera& camera, const Workers& workers, const Turn& turn) const;
  std::optional<shard::ShardNumber> shard_of(const CameraId& camera) const;
  int count() const { return static_cast<int>(shards_.size()); }

 private:
  struct Shard {
    WorkerNumber blue = 0, green = 0;
    rollout::State rollout = {};
    restart::CrashLoop loop = {};
    bool has(WorkerNumber worker) const { return blue == worker || green == worker; }
  };
  using Shardmap = std::map<shard::ShardNumber, Shard>;

  std::set<shard::ShardNumber> used() const;
  Shardmap::iterator owner_of(WorkerNumber worker);
  WorkerNumber start(shard::ShardNumber number, bool standby, const std::vector<const Camera*>& cameras, Fleet& fleet,
                     Turn& turn);
  void leave(WorkerNumber worker, bool crash, Duration lived, Fleet& fleet, Turn& turn);
  void detach_ended(Fleet& fleet, Turn& turn);
  void dismiss_unused(Fleet& fleet, Turn& turn);
  void take_spare(shard::ShardNumber number, const Workers& workers);
  shard::ShardNumber free_label(const Workers& workers) const;

  void roll(shard::ShardNumber number, Shard& shard, const rollout::Event& event, Fleet& fleet, Turn& turn);
  void perform(const rollout::Action& action, shard::ShardNumber number, Shard& shard, Fleet& fleet, Turn& turn);
  void move_on(shard::ShardNumber number, Shard& shard, Fleet& fleet, Turn& turn);
  bool still_filling(shard::ShardNumber number, const Shard& shard, const Cameras& cameras) const;
  bool needs_rollout(shard::ShardNumber number, const Shard& shard, const Fleet& fleet, const Turn& turn) const;
  bool waits_for_green(const Camera& camera, const Shard& shard, const Workers& workers, const Turn& turn) const;

  Shardmap shards_;
  shard::Assignment assignment_;
  WorkerNumber spare_ = 0;
  restart::CrashLoop spare_loop_;
};

}  // namespace weir::runner
