#include "weir/runner/drain.hpp"

namespace weir::runner {

void Drain::order(DrainMode mode, bool room_elsewhere, Cameras& cameras, Turn& turn) {
  if (mode != mode_ && mode == DrainMode::none && !stopping())
    for (auto& [id, camera] : cameras) camera.leaving = false;
  if (mode != mode_ && mode != DrainMode::none)
    turn.note("runner.draining", mode == DrainMode::soft ? "cameras are handed to others batch by batch"
                                                         : "all cameras are let go at once");
  mode_ = mode;
  room_elsewhere_ = room_elsewhere;
}

void Drain::stop(Instant by, Turn& turn) {
  if (stopping()) return;
  turn.note("runner.stopping", "asked to stop: cameras are handed to others");
  stop_by_ = by;
}

bool Drain::step(Cameras& cameras, Turn& turn) {
  if (!active()) {
    wave_.clear();
    budgets_.clear();
    return false;
  }
  if (mode_ == DrainMode::hard || (stopping() && turn.now >= *stop_by_)) {
    for (auto& [id, camera] : cameras) camera.leaving = true;
    return true;
  }
  for (auto& [id, released] : wave_)
    if (const Camera* camera = find_in(cameras, id); camera == nullptr || camera->idle()) released = true;
  bool letting_go = std::ranges::any_of(wave_, [](const auto& each) { return !each.second; });
  bool in_vain = !room_elsewhere_ || turn.now >= wave_since_ + turn.policy.pickup_limit;
  bool picked_up = wave_.empty() || (!letting_go && in_vain);
  if (picked_up && turn.now >= wave_since_ + turn.policy.drain_interval) next_wave(cameras, turn);
  return false;
}

void Drain::next_wave(Cameras& cameras, Turn& turn) {
  wave_.clear();
  bool waits = room_elsewhere_ && !in_a_hurry(cameras, turn);
  for (auto& [id, camera] : cameras) {
    if (camera.leaving || camera.idle()) continue;
    if (waits && camera.voice.on != 0 && !budgets_.may_dial(camera.wish.config.site, turn)) continue;
    camera.leaving = true;
    if (camera.holding()) wave_[id] = false;
    if (std::ssize(wave_) >= turn.policy.drain_batch) break;
  }
  if (wave_.empty()) return;
  wave_since_ = turn.now;
  budgets_.batch_left(turn);
}

// Whether the cameras that are left can be handed over by the deadline only if the drain waits for nothing more.
bool Drain::in_a_hurry(const Cameras& cameras, const Turn& turn) const {
  if (!stopping()) return false;
  auto left =
      std::ranges::count_if(cameras, [](const auto& each) { return !each.second.leaving && !each.second.idle(); });
  auto batches = left / std::max(1, turn.policy.drain_batch) + 1;
  return turn.now + 2 * batches * turn.policy.drain_interval + turn.policy.lease.ttl >= *stop_by_;
}

void Drain::end_if_done(const Cameras& cameras, bool workers_left, Turn& turn) const {
  if (!stopping()) return;
  bool holds =
      std::ranges::any_of(cameras, [](const auto& each) { return !each.second.idle() || !each.second.at_rest(); });
  if (!holds && !workers_left) return turn.end(0, "stopped: every camera was let go");
  // A runner that the store does not answer need not wait for ever: the last will releases the rest.
  if (turn.now >= *stop_by_ + turn.policy.lease.ttl)
    turn.end(40, "stopped; not everything could be given back, which is left to the last will");
}

}  // namespace weir::runner
