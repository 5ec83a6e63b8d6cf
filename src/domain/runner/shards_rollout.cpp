// How a shard's worker is replaced: when, and when the new one is good enough.
#include "weir/runner/shards.hpp"

namespace weir::runner {

using shard::ShardNumber;

namespace {

constexpr Duration kDetectorPatience = 10s;

// Pictures arrive before the model is loaded: a camera that moved to green then would be blind for so long. Where
// nothing moves, the detector looks at no picture, so the wait for its first look has a limit.
bool shows(const Worker& green, const CameraId& camera, Instant now) {
  bool patience_over = now >= green.process.started() + kDetectorPatience;
  return green.streaming.contains(camera) && (patience_over || !green.unseen.contains(camera));
}

// What blue delivers now must go on; a camera that nobody gets pictures of must not hold the others up. Whatever blue
// said before the rollout may be older than its cameras' first pictures, so blue has to have answered since.
bool green_ready(const Worker& green, const Worker* blue, Instant begun, const Turn& turn) {
  if (!green.looked_at || blue == nullptr) return green.looked_at;
  if (turn.now - blue->process.since_heard(turn.now) < begun) return false;
  int wanted = 0, delivered = 0;
  for (const CameraId& camera : blue->streaming) {
    if (!green.sources.contains(camera)) continue;
    ++wanted;
    delivered += shows(green, camera, turn.now);
  }
  return delivered * 100 >= turn.policy.quorum_pct * wanted;
}

}  // namespace

// A quorum is enough to begin to move; a camera that green does not show yet stays with blue a little longer, and one
// about which the store does not answer stays for as long as that lasts: once blue is silenced, green would wait for
// a version.
bool Shards::waits_for_green(const Camera& camera, const Shard& shard, const Workers& workers, const Turn& turn) const {
  const Worker* green = workers.find(shard.green);
  if (camera.voice.on != shard.blue || !workers.running(shard.blue) || green == nullptr) return false;
  if (camera.lease.holder.open || !camera.lease.answered()) return true;
  bool delivered = !green->sources.contains(camera.id()) || shows(*green, camera.id(), turn.now);
  bool patient = turn.now + turn.policy.rollout_times.ready_within / 2 < shard.rollout.deadline;
  return patient && workers.find(shard.blue)->streaming.contains(camera.id()) && !delivered;
}

bool Shards::needs_rollout(ShardNumber number, const Shard& shard, const Fleet& fleet, const Turn& turn) const {
  if (!fleet.workers.running(shard.blue) || shard.green != 0) return false;
  const Worker& blue = *fleet.workers.find(shard.blue);
  for (const auto& [id, camera] : fleet.cameras)
    if (camera.voice.on == shard.blue && !camera.lease.answered()) return false;
  // A new program comes to one shard after the other.
  bool others_roll = std::ranges::any_of(
      shards_, [](const auto& each) { return each.second.rollout.phase != rollout::Phase::steady; });
  if (fleet.workers.old(blue) && !others_roll) return true;
  return std::ranges::any_of(fleet.cameras, [&](const auto& each) {
    const Camera& camera = each.second;
    if (shard_of(each.first) != number || !camera.may_speak()) return false;
    if (camera.voice.on == shard.blue && needs_new_model(camera, fleet.workers)) return true;
    bool joins = camera.at_rest() && camera.payment.paid() && !camera.voice.joined && !blue.filling &&
                 !blue.sources.contains(each.first);
    return joins && turn.policy.rollout == rollout::Mode::bluegreen;
  });
}

bool Shards::still_filling(ShardNumber number, const Shard& shard, const Cameras& cameras) const {
  return std::ranges::any_of(cameras, [&](const auto& each) {
    return shard_of(each.first) == number && each.second.may_speak() && each.second.voice.on != shard.blue;
  });
}

void Shards::roll_out(Fleet& fleet, Turn& turn) {
  for (auto& [number, shard] : shards_) {
    if (Worker* blue = fleet.workers.find(shard.blue); blue != nullptr && blue->filling)
      blue->filling = still_filling(number, shard, fleet.cameras);
    if (shard.rollout.phase == rollout::Phase::steady) {
      if (needs_rollout(number, shard, fleet, turn)) roll(number, shard, rollout::Needed{}, fleet, turn);
      continue;
    }
    if (shard.rollout.phase == rollout::Phase::warming && fleet.workers.running(shard.green) &&
        green_ready(*fleet.workers.find(shard.green), fleet.workers.find(shard.blue),
                    shard.rollout.deadline - turn.policy.rollout_times.ready_within, turn))
      roll(number, shard, rollout::GreenReady{}, fleet, turn);
    if (shard.rollout.phase == rollout::Phase::moving) move_on(number, shard, fleet, turn);
    roll(number, shard, rollout::TimePassed{}, fleet, turn);
  }
}

void Shards::move_on(ShardNumber number, Shard& shard, Fleet& fleet, Turn& turn) {
  bool left = false, store_away = false;
  for (const auto& [id, camera] : fleet.cameras) {
    bool here = shard_of(id) == number;
    left |= camera.voice.on == shard.blue ||
            (here && camera.may_speak() && camera.payment.paid() && camera.voice.on != shard.green);
    store_away |= here && camera.lease.right && !camera.lease.answered();
  }
  if (!left) roll(number, shard, rollout::AllMoved{}, fleet, turn);
  else if (store_away) roll(number, shard, rollout::StoreAway{}, fleet, turn);
}

void Shards::roll(ShardNumber number, Shard& shard, const rollout::Event& event, Fleet& fleet, Turn& turn) {
  rollout::Phase before = shard.rollout.phase;
  rollout::Step made = rollout::step(shard.rollout, event, turn.now, turn.policy.rollout_times, turn.draw());
  shard.rollout = made.next;
  for (const rollout::Action& action : made.actions) perform(action, number, shard, fleet, turn);
  bool unfinished = before == rollout::Phase::warming || before == rollout::Phase::moving;
  if (unfinished && std::holds_alternative<rollout::GreenGone>(event))
    turn.warn("rollout.given_up", "the new worker ended before it had taken over: the old one goes on");
  if (before == rollout::Phase::warming && shard.rollout.phase == rollout::Phase::moving)
    turn.note("rollout.moving", "the new worker is ready: its cameras are moved", {}, shard.green);
}

void Shards::perform(const rollout::Action& action, ShardNumber number, Shard& shard, Fleet& fleet, Turn& turn) {
  if (std::holds_alternative<rollout::StartGreen>(action)) {
    std::vector<const Camera*> standing_by;
    for (const auto& [id, camera] : fleet.cameras)
      if (shard_of(id) == number && camera.may_speak() && !camera.few() && camera.payment.paid())
        standing_by.push_back(&camera);
    shard.green = start(number, true, standing_by, fleet, turn);
    fleet.workers.find(shard.green)->filling = false;
    turn.note("rollout.warming", "a new worker stands by", {}, shard.green);
  } else if (std::holds_alternative<rollout::DrainBlue>(action)) {
    fleet.workers.dismiss(shard.blue, turn);
  } else if (std::holds_alternative<rollout::KillBlue>(action)) {
    fleet.workers.kill(shard.blue, "the worker did not drain within its grace", turn);
  } else if (std::holds_alternative<rollout::KillGreen>(action)) {
    turn.warn("rollout.given_up", "the new worker did not get ready in time: the old one goes on", {}, shard.green);
    fleet.workers.kill(shard.green, "given up", turn);
  } else if (std::holds_alternative<rollout::PromoteGreen>(action)) {
    shard.blue = std::exchange(shard.green, 0);
    fleet.workers.find(shard.blue)->filling = true;
    turn.note("rollout.done", "the new worker has taken over", {}, shard.blue);
  }
}

void Shards::learn_sessions(const WorkerHeard& event, const std::set<CameraId>& streamed, Fleet& fleet, Turn& turn) {
  auto owner = owner_of(event.worker);
  if (owner == shards_.end() || owner->second.rollout.phase != rollout::Phase::warming || owner->second.green == 0)
    return;
  const Shard& shard = owner->second;
  Worker& green = *fleet.workers.find(shard.green);
  const Worker* blue = fleet.workers.find(shard.blue);
  bool just_dialled = turn.now < green.process.started() + 8s;
  std::vector<TellItem> gone;
  for (const SeenCamera& seen : event.cameras) {
    Camera* camera = find_in(fleet.cameras, seen.camera);
    if (camera == nullptr || !green.sources.contains(seen.camera) || camera->voice.on != shard.blue) continue;
    bool blue_streams = blue != nullptr && blue->streaming.contains(seen.camera);
    bool refused = event.worker == shard.green ? seen.failures > 0 && !seen.streaming && blue_streams
                                               : streamed.contains(seen.camera) && !seen.streaming && just_dialled;
    if (!refused) continue;
    turn.note("camera.few_sessions", "the camera allows no second connection: it is handed over in order", seen.camera);
    camera->few_sessions = true;
    green.sources.erase(seen.camera);
    gone.push_back({seen.camera});
  }
  if (!gone.empty() && green.process.phase() == restart::Supervised::Phase::running)
    fleet.workers.tell(shard.green, Message::remove, std::move(gone), turn);
}

}  // namespace weir::runner
