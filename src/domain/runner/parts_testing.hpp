// What the tests of the brain's parts share: ids, cameras in a given state, and a turn whose actions can be looked at.
// One thread.
#pragma once

#include "weir/runner/workers.hpp"

#include <gtest/gtest.h>

namespace weir::runner::testing {

inline CameraId cam(const std::string& name) { return CameraId::trusted(name); }

inline constexpr Instant kNow{10000s};

// A turn that has begun.
inline Turn turn_at(Instant now, Policy policy = {}) {
  Turn turn(std::move(policy), 7);
  turn.begin({now, WallTime(now.time_since_epoch())});
  return turn;
}
inline void pass(Turn& turn, Duration time) { turn.begin({turn.now + time, turn.wall + time}); }

template <class T>
std::vector<T> only(const std::vector<Action>& actions) {
  std::vector<T> out;
  for (const Action& action : actions)
    if (const T* one = std::get_if<T>(&action)) out.push_back(*one);
  return out;
}
inline bool noted(const std::vector<Action>& actions, const std::string& event) {
  auto notes = only<Note>(actions);
  return std::ranges::find(notes, event, &Note::event) != notes.end();
}

inline Camera& add_camera(Cameras& cameras, const std::string& name, const std::string& site = "s") {
  Camera& camera = cameras[cam(name)];
  camera.wish.config.camera = camera.lease.holder.subject = cam(name);
  camera.wish.config.site = SiteId::trusted(site);
  camera.wish.version = "v1";
  camera.desired = true;
  return camera;
}
// One that this runner holds until a minute from now and whose version nobody was given.
inline Camera& add_held(Cameras& cameras, const std::string& name, std::int64_t version = 1) {
  Camera& camera = add_camera(cameras, name);
  lease::HolderState& holder = camera.lease.holder;
  holder.phase = lease::Phase::holding;
  holder.version = holder.grant = {version};
  holder.valid_until = kNow + 1min;
  holder.next_ask = kNow + 1min;
  camera.lease.right = lease::Speak{holder.version, holder.grant, holder.valid_until, true};
  return camera;
}

// A worker that is up.
inline WorkerNumber start_running(Workers& workers, Turn& turn, shard::ShardNumber shard = 0) {
  WorkerNumber number = workers.start({.shard = shard}, {}, turn);
  workers.find(number)->process.up(turn.now);
  return number;
}

}  // namespace weir::runner::testing
