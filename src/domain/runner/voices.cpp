#include "weir/runner/voices.hpp"

namespace weir::runner {

namespace {

void tell(Camera& camera, WorkerNumber worker, Message what, TellItem item, Fleet& fleet, Turn& turn) {
  camera.voice.busy = fleet.workers.tell(worker, what, {std::move(item)}, turn);
}

// The worker has not confirmed that it is silent: a worker all of whose cameras move is ended at once, another one when
// its deadline has passed and a healthy one would have lost its patience with the bus. The deadline alone is not
// enough: a worker that may not publish still writes to the disk, and what is found there later would be older than
// what the next worker has published. A worker that was killed and does not end writes nothing more.
void silence_failed(Camera& camera, Fleet& fleet, Turn& turn) {
  constexpr Duration kPatience = 6s;
  Voice& voice = camera.voice;
  voice.retry_at = turn.now + 200ms;
  Instant asked = voice.silence_asked.value_or(turn.now);
  const Worker* worker = fleet.workers.find(voice.on);
  if (turn.now < asked + 1s || worker == nullptr) return;
  bool past = turn.now >= voice.told_until;
  if (worker->process.killed()) {
    if (!past) return;
    voice.stopped();
    voice.after = turn.wall;
    return;
  }
  bool all_move = std::ranges::all_of(fleet.cameras, [&](const auto& each) {
    return each.second.voice.on != voice.on || each.second.voice.silence_asked.has_value();
  });
  if (all_move || (past && turn.now >= asked + kPatience))
    fleet.workers.kill(voice.on, "the worker does not confirm that it is silent", turn);
}

void extended(Camera& camera, const Sent& sent, const TellItem& item, bool ok) {
  if (!ok || camera.voice.on != sent.worker) return;
  camera.voice.told_until = item.right->valid_until;
  // A worker that was asked to be silent meanwhile may not have adopted the spool: the next one is told of it again.
  auto& right = camera.lease.right;
  if (!camera.voice.silence_asked && right && right->grant == item.right->grant) right->adopt.reset();
}

void given(Camera& camera, const Sent& sent, const TellItem& item, bool ok, Worker* worker, Instant now) {
  Voice& voice = camera.voice;
  if (ok) {
    voice.on = sent.worker;
    voice.missed = 0;
    voice.joined = true;
    voice.told_until = item.right->valid_until;
    return voice.after.reset();
  }
  voice.retry_at = now + 500ms;
  if (worker == nullptr) return;
  if (voice.on == sent.worker)
    return worker->sources[item.camera].version.clear();  // what it has is not known: told again
  // It may have arrived: then this worker speaks, and has to confirm that it does no longer.
  if (sent.what == Message::add) worker->sources.erase(item.camera);
  voice.on = sent.worker;
  voice.told_until = item.right->valid_until;
  voice.silence_asked = now;
}

void silenced(Camera& camera, const Told& event, Fleet& fleet, Turn& turn) {
  if (!event.ok) return silence_failed(camera, fleet, turn);
  camera.voice.stopped();
  auto last = event.last_capture.find(camera.id());
  if (last == event.last_capture.end()) return;
  // The worker's last event may be from before another runner's turn, which a store that lost commits has forgotten.
  // A grant that lies in the future is from before the clock was set back.
  bool of_this_grant = last->second >= camera.lease.granted_at || camera.lease.granted_at > turn.wall;
  if (of_this_grant) camera.voice.after = last->second;
}

}  // namespace

void hand_over(Camera& camera, WorkerNumber to, Fleet& fleet, Turn& turn) {
  Worker& worker = *fleet.workers.find(to);
  bool standing_by = camera.voice.on != to && worker.sources.contains(camera.id());
  TellItem item{.camera = camera.id(), .right = camera.lease.right, .after = camera.voice.after};
  if (!standing_by) {
    item.config = camera.wish.config;
    worker.sources[camera.id()] = {camera.wish.version, camera.wish.config.model};
  }
  camera.lease.right->fresh = false;
  tell(camera, to, standing_by ? Message::activate : Message::add, std::move(item), fleet, turn);
}

void take_away(Camera& camera, Message how, Fleet& fleet, Turn& turn) {
  Voice& voice = camera.voice;
  Worker& worker = *fleet.workers.find(voice.on);
  if (worker.starting()) return;
  if (!voice.silence_asked) voice.silence_asked = turn.now;
  if (how != Message::silence) worker.sources.erase(camera.id());
  tell(camera, voice.on, how, {camera.id()}, fleet, turn);
}

bool take_from_standby(Camera& camera, Fleet& fleet, Turn& turn) {
  for (auto& [number, worker] : fleet.workers.all) {
    if (!worker.process.running() || worker.sources.erase(camera.id()) == 0) continue;
    tell(camera, number, Message::remove, {camera.id()}, fleet, turn);
    return true;
  }
  return false;
}

void extend_rights(Fleet& fleet, Turn& turn) {
  for (auto& [number, worker] : fleet.workers.all) {
    if (worker.extending != 0 || !worker.process.running() || turn.now < worker.extend_at) continue;
    std::vector<TellItem> items;
    for (auto& [id, camera] : fleet.cameras) {
      auto& right = camera.lease.right;
      bool due = camera.voice.on == number && camera.voice.busy == 0 && !camera.voice.silence_asked && right &&
                 !camera.lease.holder.rotate && right->valid_until > camera.voice.told_until;
      if (!due) continue;
      items.push_back({.camera = id, .right = right});
      right->fresh = false;
    }
    if (!items.empty()) worker.extending = fleet.workers.tell(number, Message::extend, std::move(items), turn);
  }
}

void hear_told(const Told& event, Fleet& fleet, Turn& turn) {
  auto sent = fleet.workers.answered(event.message);
  if (!sent) return;
  Worker* worker = fleet.workers.find(sent->worker);
  if (worker != nullptr && worker->extending == event.message) {
    worker->extending = 0;
    if (!event.ok) worker->extend_at = turn.now + 200ms;
  }
  for (const TellItem& item : sent->items) {
    Camera* camera = find_in(fleet.cameras, item.camera);
    if (camera == nullptr) continue;
    bool its_message = camera->voice.busy == event.message;
    if (its_message) camera->voice.busy = 0;
    switch (sent->what) {
      case Message::extend: extended(*camera, *sent, item, event.ok); break;
      case Message::add:
      case Message::activate:
        if (its_message) given(*camera, *sent, item, event.ok, worker, turn.now);
        break;
      case Message::remove:
      case Message::silence:
      case Message::lose:
        if (its_message && camera->voice.on == sent->worker) silenced(*camera, event, fleet, turn);
        break;
      case Message::drain: break;
    }
  }
}

void forget_worker(WorkerNumber worker, const std::map<std::uint64_t, Sent>& unanswered, Cameras& cameras) {
  for (auto& [id, camera] : cameras) {
    if (camera.voice.on != worker) continue;
    camera.voice.on = 0;
    camera.voice.after.reset();
    camera.voice.silence_asked.reset();
  }
  for (const auto& [message, sent] : unanswered)
    for (const TellItem& item : sent.items) {
      Camera* camera = find_in(cameras, item.camera);
      if (camera == nullptr || camera->voice.busy != message) continue;
      camera->voice.busy = 0;
      bool gave_voice = sent.what == Message::add || sent.what == Message::activate;
      if (gave_voice) camera->voice.after.reset();  // it may have heard, and spoken
    }
}

void compare_with(const WorkerHeard& event, Fleet& fleet, Turn& turn) {
  if (!fleet.workers.running(event.worker)) return;
  Worker& worker = *fleet.workers.find(event.worker);
  std::set<CameraId> has;
  for (const SeenCamera& seen : event.cameras) {
    has.insert(seen.camera);
    if (worker.sources.contains(seen.camera)) continue;
    Camera* camera = find_in(fleet.cameras, seen.camera);
    if (camera == nullptr) fleet.workers.tell(event.worker, Message::remove, {{seen.camera}}, turn);
    else if (camera->voice.busy == 0) tell(*camera, event.worker, Message::remove, {seen.camera}, fleet, turn);
  }
  for (auto& [id, camera] : fleet.cameras) {
    Voice& voice = camera.voice;
    if (voice.on != event.worker || voice.busy != 0 || voice.silence_asked || has.contains(id)) continue;
    // The look may be older than the last message.
    if (++voice.missed < 3) continue;
    turn.warn("camera.missing", "the camera's worker has lost it and is given it again", id, event.worker);
    voice.silence_asked = turn.now;
    worker.sources.erase(id);
  }
}

}  // namespace weir::runner
