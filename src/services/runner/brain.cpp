// The brain's ears: what each event changes. What follows from it stands in brain_cameras.cpp and brain_workers.cpp.
#include "weir/runner/brain.hpp"

#include "weir/restart/retry_policy.hpp"

#include <algorithm>

namespace weir::runner {

using lease::Outcome;
using lease::Phase;

namespace {
constexpr Duration kNewsSpread = 200ms;
constexpr Duration kAsleep = 2s;  // it is woken four times a second
constexpr Duration kIdle = 800ms;  // a worker that lives uses processor time within so long
}  // namespace

Brain::Brain(Policy policy, BootId boot, RunnerId runner, std::uint64_t seed)
    : policy_(std::move(policy)), boot_(std::move(boot)), runner_(std::move(runner)), random_(seed) {}

double Brain::draw() {
  std::uint64_t z = (random_ += 0x9E3779B97F4A7C15ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

void Brain::note(std::string event, std::string text, const CameraId& camera, WorkerNumber worker, bool warning) {
  actions_.push_back(Note{std::move(event), std::move(text), camera, worker, warning});
}

std::vector<Action> Brain::handle(const Event& event, Moment moment) {
  // Whoever was stopped himself has not listened: his workers' silence is not theirs.
  Duration slept = moment.now - moment_.now;
  if (slept > kAsleep && moment_.now != Instant{})
    for (auto& [number, worker] : workers_) worker.heard += slept, worker.silent_cpu.reset();
  moment_ = moment;
  std::visit([this](const auto& each) { on(each); }, event);
  for (auto& [id, camera] : cameras_)
    if (auto wake = lease::wake_at(camera.holder, policy_.lease); wake && moment_.now >= *wake)
      feed(camera, lease::TimePassed{});
  drain();
  acquire();
  plan();
  check_health();
  check_load();
  offer_cameras();
  man_shards();
  roll_out();
  for (auto& [id, camera] : cameras_) step(camera);
  extend_leases();
  keep_spare();
  flush_questions();
  end_if_done();
  std::erase_if(cameras_, [](const auto& entry) {
    const Camera& camera = entry.second;
    return !camera.desired && camera.holder.phase == Phase::idle && camera.on == 0 && camera.busy == 0;
  });
  return std::exchange(actions_, {});
}

Instant Brain::wake_at(Instant now) const {
  Instant wake = now + 250ms;
  for (const auto& [id, camera] : cameras_)
    if (auto due = lease::wake_at(camera.holder, policy_.lease)) wake = std::min(wake, *due);
  return std::max(wake, now);
}

// ---- the control plane's side ----

void Brain::on(const CamerasListed& event) {
  listed_ = true;
  std::set<CameraId> wanted;
  for (const Wish& wish : event.cameras) {
    const CameraId& id = wish.config.camera;
    wanted.insert(id);
    Camera& camera = cameras_[id];
    if (camera.wish.version != wish.version) camera.crashes = 0;
    camera.holder.camera = id;
    camera.wish = wish;
    camera.desired = true;
  }
  for (auto& [id, camera] : cameras_)
    if (!wanted.contains(id) && !event.unreadable.contains(id)) camera.desired = false;
}

void Brain::on(const FlagsHeard& event) {
  if (event.cordoned != cordoned_)
    note(event.cordoned ? "runner.cordoned" : "runner.uncordoned",
         event.cordoned ? "no further cameras are taken" : "cameras are taken again");
  if (event.drain != drain_ && event.drain == DrainMode::none && !stop_by_)
    for (auto& [id, camera] : cameras_) camera.leaving = false;
  if (event.drain != drain_ && event.drain != DrainMode::none)
    note("runner.draining", event.drain == DrainMode::soft ? "cameras are handed to others batch by batch"
                                                           : "all cameras are let go at once");
  cordoned_ = event.cordoned;
  drain_ = event.drain;
  room_elsewhere_ = !event.spare || *event.spare > 0;
  if (event.capacity > 0) policy_.capacity = event.capacity;
}

// A lease lasts as long as the store's answer says, so what is held keeps its time until its next renewal.
void Brain::on(const TimesChanged& event) {
  policy_.lease = event.lease;
  policy_.poll = event.poll;
  policy_.drain_batch = event.drain_batch;
  policy_.drain_interval = event.drain_interval;
}

void Brain::on(const LeaseNews& event) {
  auto found = cameras_.find(event.camera);
  if (found == cameras_.end()) return;
  Camera& camera = found->second;
  camera.elsewhere = !event.free && event.runner != runner_;
  if (camera.elsewhere) wave_.erase(event.camera);
  if (!event.free) return;
  // The least loaded runner asks first.
  int owned = static_cast<int>(std::ranges::count_if(
      cameras_, [](const auto& each) { return each.second.holder.phase == Phase::holding; }));
  double load = static_cast<double>(owned) / std::max(1, policy_.capacity);
  if (camera.holder.phase == Phase::idle)
    camera.try_at = moment_.now + from_seconds(seconds(kNewsSpread) * std::min(1.0, load) * (0.75 + 0.25 * draw()));
  camera.news = std::max(camera.news, event.version);
  ask_about_news(camera);
}

void Brain::on(const HoldersHeard& event) {
  for (const auto& [id, version] : event.others)
    if (auto found = cameras_.find(id); found != cameras_.end() && found->second.holder.phase == Phase::idle)
      found->second.elsewhere |= version >= found->second.news;
}

// Ours no longer, it says: the store's own answer decides, and is asked for now; an answer that is still under way may be
// older than the news, so it is asked for again after that one.
void Brain::ask_about_news(Camera& camera) {
  if (camera.holder.phase != Phase::holding || camera.holder.open) return;
  if (std::exchange(camera.news, {}) > camera.holder.version) camera.holder.next_ask = moment_.now;
}

void Brain::on(const LeasesHeard& event) {
  for (const LeasesHeard::One& each : event.answers) hear(each);
}

void Brain::hear(const LeasesHeard::One& event) {
  auto found = cameras_.find(event.camera);
  if (found == cameras_.end()) return;
  Camera& camera = found->second;
  const auto* answered = std::get_if<lease::Answered>(&event.event);
  bool expected = answered != nullptr && camera.holder.open && camera.holder.open->id == answered->question;
  bool asked_for_it = expected && camera.holder.open->operation == lease::Operation::acquire;
  bool was_ours = expected && camera.holder.open->operation == lease::Operation::renew;
  feed(camera, event.event);
  ask_about_news(camera);
  if (!expected) return;
  camera.answered_at = moment_.now;
  // Whether what was lost is another's or free is in the news.
  if (answered->answer.outcome != Outcome::lost) camera.elsewhere = answered->answer.outcome == Outcome::held;
  if (answered->answer.why == lease::Refusal::boot_dead && !std::exchange(ended_, true))
    actions_.push_back(End{60, "the last will of this boot was carried out while it lived"});
  if (answered->answer.outcome == Outcome::kept) {
    camera.letting_go = false;
    camera.try_reach_until = moment_.now + std::min<Duration>(16min, 1min * (1 << std::min(camera.gave_up, 4)));
    ++camera.gave_up;
  }
  // Somebody else has it: news, or the slow poll, will bring the next try.
  if (camera.holder.phase == Phase::acquiring && !camera.holder.open) {
    feed(camera, lease::Unwanted{});
    bool settling = answered->answer.why == lease::Refusal::settling;
    // What was taken from us may be free again by now: deleted and registered anew, or disabled and enabled.
    Duration pause = was_ours || (settling && asked_for_it) ? Duration(1s) : policy_.poll;
    camera.try_at = moment_.now + from_seconds(seconds(pause) * (0.5 + draw()));
    camera.letting_go = false;
  }
}

void Brain::on(const TokenHeard& event) {
  auto found = cameras_.find(event.camera);
  if (found == cameras_.end()) return;
  Camera& camera = found->second;
  camera.paying = false;
  if (!camera.right || camera.right->grant != event.grant) return;
  camera.paid = event.granted;
  camera.short_of_budget = event.refused && !event.granted;
  Duration later = std::clamp<Duration>(event.retry_after, 50ms, 5s);
  camera.pay_at = moment_.now + from_seconds(seconds(later) * (1 + 0.25 * draw()));
}

void Brain::on(const StopAsked& event) {
  if (stop_by_) return;
  note("runner.stopping", "asked to stop: cameras are handed to others");
  stop_by_ = event.deadline;
}

void Brain::on(const LoadHeard& event) {
  std::string what = event.too_high ? event.what : "";
  if (what.empty() != overload_.empty())
    note(what.empty() ? "runner.load_normal" : "runner.overloaded",
         what.empty() ? "cameras are taken again" : what + "; no further cameras are taken", {}, 0, !what.empty());
  overload_ = std::move(what);
}

void Brain::on(const BinaryChanged&) {
  ++binary_;
  note("worker.binary_changed", "another weir-worker is installed: every worker is replaced by it");
}

// ---- the workers' side ----

void Brain::on(const WorkerUp& event) {
  auto found = workers_.find(event.worker);
  if (found == workers_.end() || found->second.phase != WorkerPhase::starting) return;
  found->second.phase = WorkerPhase::running;
  found->second.heard = moment_.now;
  workers_start();
}

void Brain::on(const WorkerGone& event) {
  auto found = workers_.find(event.worker);
  if (found == workers_.end()) return;
  Worker worker = std::move(found->second);
  workers_.erase(found);
  bool never_up = worker.phase == WorkerPhase::starting && !worker.killed;
  bool crash = (event.code != 0 && worker.phase != WorkerPhase::draining) || never_up;
  CameraId culprit_id = worker.hung ? worker.stuck : event.culprit;
  if (crash && !worker.killed)
    note("worker.crashed", fmt::format("exit code {}{}; another worker takes over", event.code,
                                       event.culprit.empty() ? "" : ", while it served this camera"),
         event.culprit, event.worker, true);
  for (auto& [id, camera] : cameras_) {
    if (camera.on != event.worker) continue;
    camera.on = 0;
    camera.after.reset();
    camera.silence_asked.reset();
  }
  for (auto it = sent_.begin(); it != sent_.end();) {
    if (it->second.worker != event.worker) {
      ++it;
      continue;
    }
    for (const TellItem& item : it->second.items)
      if (auto camera = cameras_.find(item.camera); camera != cameras_.end() && camera->second.busy == it->first) {
        camera->second.busy = 0;
        bool gave_voice = it->second.what == Message::add || it->second.what == Message::activate;
        if (gave_voice) camera->second.after.reset();  // it may have heard, and spoken
      }
    it = sent_.erase(it);
  }
  if (auto culprit = cameras_.find(culprit_id); crash && culprit != cameras_.end()) {
    actions_.push_back(ReportCrash{culprit_id});
    if (++culprit->second.crashes == 2)
      note("camera.alone", "it crashed its worker twice and gets one of its own", culprit_id, 0, true);
  }
  check_starts(worker, event.code);
  Duration lived = moment_.now - worker.started;
  if (event.worker == spare_) {
    spare_ = 0;
    spare_loop_.crashed(moment_.now, lived, policy_.crashes, draw());
    return;
  }
  leave_shard(event.worker, crash, lived);
}

void Brain::leave_shard(WorkerNumber worker, bool crash, Duration lived) {
  auto owner = std::ranges::find_if(
      shards_, [&](const auto& each) { return each.second.blue == worker || each.second.green == worker; });
  if (owner == shards_.end()) return;
  auto& [number, shard] = *owner;
  if (shard.green == worker) {
    shard.green = 0;
    roll(number, shard, rollout::GreenGone{});
    return;
  }
  shard.blue = 0;
  if (shard.green != 0) {
    roll(number, shard, rollout::BlueGone{});
  } else if (crash) {
    shard.loop.crashed(moment_.now, lived, policy_.crashes, draw());
    if (shard.loop.capped())
      note("worker.capped", "it ended too often and is started again later", {}, worker, true);
  }
}

void Brain::on(const WorkerHeard& event) {
  auto found = workers_.find(event.worker);
  if (found == workers_.end()) return;
  // That it answers does not show that it has heard that it shall end.
  if (found->second.phase != WorkerPhase::draining) found->second.heard = moment_.now;
  found->second.silent_cpu.reset();
  found->second.idle = false;
  found->second.still_looks = stands_still(event) ? found->second.still_looks + 1 : 0;
  found->second.looked_at = true;
  found->second.stuck_looks = event.stuck.empty() ? 0 : found->second.stuck_looks + 1;
  found->second.stuck = event.stuck;
  auto streamed = std::exchange(found->second.streaming, {});
  found->second.unseen.clear();
  found->second.behind.clear();
  for (const SeenCamera& seen : event.cameras) {
    if (seen.streaming) found->second.streaming.insert(seen.camera);
    if (seen.behind) found->second.behind.insert(seen.camera);
    auto camera = cameras_.find(seen.camera);
    bool detects = camera != cameras_.end() && camera->second.wish.config.model.detector != "none";
    if (detects && !seen.inferred) found->second.unseen.insert(seen.camera);
  }
  learn_sessions(event, streamed);
  compare_with(event);
  for (const SeenCamera& seen : event.cameras)
    if (auto camera = cameras_.find(seen.camera); camera != cameras_.end() && camera->second.on == event.worker)
      check_seen(camera->second, seen);
}

// A worker's thread gives up a camera that sends nothing; where all cameras have sent nothing for longer and still count
// as streaming, it is the threads that stand still.
bool Brain::stands_still(const WorkerHeard& event) const {
  constexpr Duration kNotice = 1s;
  return !event.cameras.empty() && std::ranges::all_of(event.cameras, [&](const SeenCamera& seen) {
    auto camera = cameras_.find(seen.camera);
    if (camera == cameras_.end() || !seen.streaming) return false;
    const auto& snapshot = camera->second.wish.config.snapshot;
    return seen.frame_age > policy_.stall + kNotice + (snapshot ? 2 * from_seconds(snapshot->interval_s) : Duration(0));
  });
}

void Brain::on(const WorkerSilent& event) {
  auto found = workers_.find(event.worker);
  if (found == workers_.end()) return;
  Worker& worker = found->second;
  worker.idle = worker.silent_cpu == event.cpu_time && moment_.now >= worker.silent_since + kIdle;
  if (worker.silent_cpu == event.cpu_time) return;
  worker.silent_cpu = event.cpu_time;
  worker.silent_since = moment_.now;
}

// Recorders allow few connections: one that refuses green while blue streams, or drops blue when green dials, is handed
// over in order. One that nobody reaches has shown nothing. `streamed`: as this worker said before.
void Brain::learn_sessions(const WorkerHeard& event, const std::set<CameraId>& streamed) {
  auto owner = std::ranges::find_if(
      shards_, [&](const auto& each) { return each.second.blue == event.worker || each.second.green == event.worker; });
  if (owner == shards_.end() || owner->second.rollout.phase != rollout::Phase::warming || owner->second.green == 0) return;
  Worker& green = workers_.at(owner->second.green);
  bool is_green = event.worker == owner->second.green;
  auto blue = workers_.find(owner->second.blue);
  auto blue_streams = [&](const CameraId& id) { return blue != workers_.end() && blue->second.streaming.contains(id); };
  std::vector<TellItem> gone;
  for (const SeenCamera& seen : event.cameras) {
    auto camera = cameras_.find(seen.camera);
    if (camera == cameras_.end() || !green.sources.contains(seen.camera) || camera->second.on != owner->second.blue) continue;
    bool dropped = streamed.contains(seen.camera) && !seen.streaming && moment_.now < green.started + 8s;
    bool refused = is_green ? seen.failures > 0 && !seen.streaming && blue_streams(seen.camera) : dropped;
    if (!refused) continue;
    note("camera.few_sessions", "it does not allow a second connection: it is handed over in order", seen.camera);
    camera->second.few_sessions = true;
    green.sources.erase(seen.camera);
    gone.push_back({seen.camera});
  }
  if (!gone.empty() && green.phase == WorkerPhase::running) tell_aside(owner->second.green, Message::remove, std::move(gone));
}

// A message that was given up may still have arrived, and one that arrived may have met a worker that forgot it: what a
// worker has and nobody meant it to have is taken away, or it would keep a connection to the camera for nothing; what it
// should have and does not is given to it again.
void Brain::compare_with(const WorkerHeard& event) {
  if (!running(event.worker)) return;
  Worker& worker = workers_.at(event.worker);
  std::set<CameraId> has;
  for (const SeenCamera& seen : event.cameras) {
    has.insert(seen.camera);
    if (worker.sources.contains(seen.camera)) continue;
    auto camera = cameras_.find(seen.camera);
    if (camera == cameras_.end()) tell_aside(event.worker, Message::remove, {{seen.camera}});
    else if (camera->second.busy == 0) tell(event.worker, Message::remove, {{seen.camera}});
  }
  for (auto& [id, camera] : cameras_) {
    if (camera.on != event.worker || camera.busy != 0 || camera.silence_asked || has.contains(id)) continue;
    // The look may be older than the last message.
    if (++camera.missed < 3) continue;
    note("camera.missing", "its worker does not have it any more: it is given to it again", id, event.worker, true);
    camera.silence_asked = moment_.now;
    worker.sources.erase(id);
  }
}

void Brain::check_seen(Camera& camera, const SeenCamera& seen) {
  if (camera.handed_over && seen.streaming && !camera.silence_asked) {
    note("camera.handed_over",
         fmt::format("its one connection moved to another worker: {:.1f} s without it",
                     seconds(moment_.now - *std::exchange(camera.handed_over, {}))),
         seen.camera, camera.on);
  }
  camera.streamed |= seen.streaming;
  if (camera.streamed || camera.letting_go || seen.failures < policy_.unreachable_after || !seen.error) return;
  if (moment_.now < camera.try_reach_until || restart::retry_policy(*seen.error).side != restart::Side::runner) return;
  note("camera.unreachable", "it cannot be reached from here; another runner may try", seen.camera, camera.on, true);
  camera.letting_go = true;
}

void Brain::on(const Told& event) {
  auto found = sent_.find(event.message);
  if (found == sent_.end()) return;
  Sent sent = std::move(found->second);
  sent_.erase(found);
  auto worker = workers_.find(sent.worker);
  if (worker != workers_.end() && worker->second.extending == event.message) {
    worker->second.extending = 0;
    if (!event.ok) worker->second.extend_at = moment_.now + 200ms;
  }
  for (const TellItem& item : sent.items) {
    auto known = cameras_.find(item.camera);
    if (known == cameras_.end()) continue;
    Camera& camera = known->second;
    bool its_message = camera.busy == event.message;
    if (its_message) camera.busy = 0;
    switch (sent.what) {
      case Message::extend:
        if (!event.ok || camera.on != sent.worker) break;
        camera.told_until = item.right->valid_until;
        // What was asked to be silent meanwhile may not have heard it: whoever speaks next is told again.
        if (!camera.silence_asked && camera.right && camera.right->grant == item.right->grant) camera.right->adopt.reset();
        break;
      case Message::add:
      case Message::activate:
        if (!its_message) break;
        if (!event.ok) {
          camera.retry_at = moment_.now + 500ms;
          if (worker == workers_.end()) break;
          if (camera.on == sent.worker) {
            worker->second.sources[item.camera].version.clear();  // what it has is not known: it is told again
            break;
          }
          // It may have arrived: then this worker speaks, and has to confirm that it does no longer.
          if (sent.what == Message::add) worker->second.sources.erase(item.camera);
          camera.on = sent.worker;
          camera.told_until = item.right->valid_until;
          camera.silence_asked = moment_.now;
          break;
        }
        camera.on = sent.worker;
        camera.missed = 0;
        camera.joined = true;
        camera.told_until = item.right->valid_until;
        camera.after.reset();
        break;
      case Message::remove:
      case Message::silence:
      case Message::lose:
        if (!its_message || camera.on != sent.worker) break;
        if (!event.ok) {
          silence_failed(camera, sent.worker);
          break;
        }
        camera.on = 0;
        camera.lost = false;
        camera.silence_asked.reset();
        if (auto last = event.last_capture.find(item.camera); last != event.last_capture.end()) {
          // It may be from before another's turn, of which no store that lost commits knows. A grant in the future is one
          // from before the clock was set back.
          bool of_this_grant = last->second >= camera.granted_at || camera.granted_at > moment_.wall;
          if (of_this_grant) camera.after = last->second;
        }
        break;
      case Message::drain: break;
    }
  }
}

}  // namespace weir::runner
