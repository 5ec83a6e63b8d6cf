// Which workers there should be; how one replaces another stands in shards_rollout.cpp.
#include "weir/runner/shards.hpp"

namespace weir::runner {

using shard::ShardNumber;

void Shards::plan(const Cameras& cameras, const Turn& turn) {
  std::vector<shard::Member> members;
  for (const auto& [id, camera] : cameras)
    if (camera.lease.right && camera.holding() && camera.wanted())
      members.push_back({id, camera.wish.config.site, camera.alone()});
  assignment_ = shard::plan(members, assignment_, turn.policy.shard_size);
}

std::optional<ShardNumber> Shards::shard_of(const CameraId& camera) const {
  const ShardNumber* assigned = find_in(assignment_, camera);
  return assigned == nullptr ? std::nullopt : std::optional(*assigned);
}

std::set<ShardNumber> Shards::used() const {
  std::set<ShardNumber> out;
  for (const auto& [camera, number] : assignment_) out.insert(number);
  return out;
}

Shards::Shardmap::iterator Shards::owner_of(WorkerNumber worker) {
  return std::ranges::find_if(shards_, [&](const auto& each) { return each.second.has(worker); });
}

WorkerNumber Shards::start(ShardNumber number, bool standby, const std::vector<const Camera*>& cameras, Fleet& fleet,
                           Turn& turn) {
  StartWorker order{.shard = number, .standby = standby};
  std::map<CameraId, Given> sources;
  for (const Camera* camera : cameras) {
    sources[camera->id()] = {camera->wish.version, camera->wish.config.model};
    order.sources.push_back(camera->wish.config);
  }
  std::set<std::pair<std::string, std::string>> models;
  for (const auto& [id, camera] : fleet.cameras)
    if (const camera::Model& model = camera.wish.config.model; camera.desired && model.detector != "none")
      models.emplace(model.detector, model.name);
  for (const auto& [detector, name] : models) order.models.push_back({detector, name});
  return fleet.workers.start(std::move(order), std::move(sources), turn);
}

void Shards::worker_gone(WorkerNumber worker, bool crash, Duration lived, Fleet& fleet, Turn& turn) {
  if (worker != spare_) return leave(worker, crash, lived, fleet, turn);
  spare_ = 0;
  spare_loop_.crashed(turn.now, lived, turn.policy.crashes, turn.draw());
}

void Shards::leave(WorkerNumber worker, bool crash, Duration lived, Fleet& fleet, Turn& turn) {
  auto owner = owner_of(worker);
  if (owner == shards_.end()) return;
  auto& [number, shard] = *owner;
  if (shard.green == worker) {
    shard.green = 0;
    return roll(number, shard, rollout::GreenGone{}, fleet, turn);
  }
  shard.blue = 0;
  if (shard.green != 0) return roll(number, shard, rollout::BlueGone{}, fleet, turn);
  if (!crash) return;
  shard.loop.crashed(turn.now, lived, turn.policy.crashes, turn.draw());
  if (shard.loop.capped()) turn.warn("worker.capped", "the worker ended too often and starts later", {}, worker);
}

// A process that was killed and does not end (the kernel holds it) must not keep its shard without one; nor must one
// that drains and whose successor died. Its cameras are taken from it when its right has run out (silence_failed).
void Shards::detach_ended(Fleet& fleet, Turn& turn) {
  for (auto& [number, worker] : fleet.workers.all)
    if (worker.process.held_by_kernel(turn.now, turn.policy.supervision())) leave(number, false, {}, fleet, turn);
  for (auto& [number, shard] : shards_)
    if (const Worker* blue = fleet.workers.find(shard.blue); shard.green == 0 && blue != nullptr && blue->draining())
      shard.blue = 0;
}

void Shards::man(Fleet& fleet, Turn& turn) {
  detach_ended(fleet, turn);
  for (ShardNumber number : used()) {
    Shard& shard = shards_[number];
    if (shard.blue != 0 || shard.green != 0 || turn.now < shard.loop.next_start()) continue;
    const Worker* spare = fleet.workers.find(spare_);
    if (spare != nullptr && spare->shard == number && !spare->process.killed() && !spare->draining()) {
      shard.blue = std::exchange(spare_, 0);
    } else if (fleet.workers.running(spare_) && !fleet.workers.old(*spare)) {
      take_spare(number, fleet.workers);
    } else {
      shard.blue = start(number, false, {}, fleet, turn);
    }
  }
  dismiss_unused(fleet, turn);
}

void Shards::dismiss_unused(Fleet& fleet, Turn& turn) {
  std::set<ShardNumber> planned = used();
  std::erase_if(shards_, [&](const auto& entry) {
    const auto& [number, shard] = entry;
    bool busy = std::ranges::any_of(fleet.cameras, [&](const auto& each) {
      return each.second.voice.on != 0 && entry.second.has(each.second.voice.on);
    });
    if (planned.contains(number) || busy) return false;
    for (WorkerNumber worker : {shard.blue, shard.green}) fleet.workers.dismiss(worker, turn);
    return true;
  });
}

// The idle worker's label becomes the shard's number.
void Shards::take_spare(ShardNumber number, const Workers& workers) {
  ShardNumber label = workers.find(spare_)->shard;
  auto shard = shards_.extract(number);
  shard.mapped().blue = std::exchange(spare_, 0);
  shard.key() = label;
  shards_.insert(std::move(shard));
  for (auto& [camera, assigned] : assignment_)
    if (assigned == number) assigned = label;
}

ShardNumber Shards::free_label(const Workers& workers) const {
  std::set<ShardNumber> taken;
  for (const auto& [number, shard] : shards_) taken.insert(number);
  for (const auto& [number, worker] : workers.all) taken.insert(worker.shard);
  ShardNumber label = 0;
  while (taken.contains(label)) ++label;
  return label;
}

void Shards::keep_spare(bool wanted, Fleet& fleet, Turn& turn) {
  if (const Worker* spare = fleet.workers.find(spare_)) {
    if (!wanted || fleet.workers.old(*spare)) fleet.workers.dismiss(spare_, turn);
    return;
  }
  if (wanted && turn.now >= spare_loop_.next_start()) spare_ = start(free_label(fleet.workers), false, {}, fleet, turn);
}

WorkerNumber Shards::target_of(const Camera& camera, const Workers& workers, const Turn& turn) const {
  auto assigned = shard_of(camera.id());
  const Shard* shard = assigned ? find_in(shards_, *assigned) : nullptr;
  if (shard == nullptr) return 0;
  bool moving = shard->rollout.phase == rollout::Phase::moving || shard->rollout.phase == rollout::Phase::draining;
  bool to_green = moving && shard->green != 0 && !waits_for_green(camera, *shard, workers, turn);
  WorkerNumber target = to_green ? shard->green : shard->blue;
  if (!workers.running(target)) return 0;
  // In the blue/green way a camera joins with the next green, unless the worker is still being filled, or greens fail.
  // A camera that this worker has already only comes back.
  const Worker& worker = *workers.find(target);
  bool greens_fail = turn.now < shard->rollout.not_before;
  bool joins_later = turn.policy.rollout == rollout::Mode::bluegreen && target == shard->blue && !worker.filling &&
                     !greens_fail && !camera.voice.joined && camera.voice.on == 0 &&
                     !worker.sources.contains(camera.id());
  return joins_later ? 0 : target;
}

}  // namespace weir::runner
