// What each event changes, and what the brain says of itself; a camera's next step stands in brain_step.cpp.
#include "weir/runner/brain.hpp"

#include "weir/restart/retry_policy.hpp"

namespace weir::runner {

namespace {
constexpr Duration kAsleep = 2s;  // it is woken four times a second
}  // namespace

Brain::Brain(Policy policy, BootId boot, RunnerId runner, std::uint64_t seed)
    : turn_(std::move(policy), seed), leases_(std::move(boot), std::move(runner)) {}

std::vector<Action> Brain::handle(const Event& event, Moment moment) {
  // A manager that was itself stopped heard nobody: it does not count that time as its workers' silence.
  if (Duration slept = turn_.begin(moment); slept > kAsleep) fleet_.workers.overslept(slept);
  auto& [cameras, workers] = fleet_;
  std::visit([this](const auto& each) { on(each); }, event);
  leases_.wake(cameras, turn_);
  if (drain_.step(cameras, turn_))
    for (auto& [number, worker] : workers.all) workers.kill(number, "hard drain", turn_);
  if (why_not_acquire().empty()) leases_.acquire(cameras, turn_);
  shards_.plan(cameras, turn_);
  workers.check(turn_);
  check_load();
  offer_cameras();
  shards_.man(fleet_, turn_);
  shards_.roll_out(fleet_, turn_);
  for (auto& [id, camera] : cameras) step(camera);
  extend_rights(fleet_, turn_);
  shards_.keep_spare(turn_.policy.spare && !drain_.active() && listed_, fleet_, turn_);
  leases_.flush(turn_);
  drain_.end_if_done(cameras, !workers.all.empty(), turn_);
  std::erase_if(cameras, [](const auto& each) {
    return !each.second.desired && each.second.idle() && each.second.at_rest();
  });
  return turn_.take();
}

Instant Brain::wake_at(Instant now) const {
  Instant wake = now + 250ms;
  for (const auto& [id, camera] : fleet_.cameras)
    if (auto due = lease::wake_at(camera.lease.holder, turn_.policy.lease)) wake = std::min(wake, *due);
  return std::max(wake, now);
}

// ---- the control plane's side ----

void Brain::on(const CamerasListed& event) {
  listed_ = true;
  std::set<CameraId> wanted;
  for (const Wish& wish : event.cameras) {
    const CameraId& id = wish.config.camera;
    wanted.insert(id);
    Camera& camera = fleet_.cameras[id];
    if (camera.wish.version != wish.version) camera.crashes = 0;
    camera.lease.holder.subject = id;
    camera.wish = wish;
    camera.desired = true;
  }
  for (auto& [id, camera] : fleet_.cameras)
    if (!wanted.contains(id) && !event.unreadable.contains(id)) camera.desired = false;
}

void Brain::on(const FlagsHeard& event) {
  if (event.cordoned != cordoned_)
    turn_.note(event.cordoned ? "runner.cordoned" : "runner.uncordoned",
               event.cordoned ? "no further cameras are taken" : "cameras are taken again");
  cordoned_ = event.cordoned;
  drain_.order(event.drain, !event.spare || *event.spare > 0, fleet_.cameras, turn_);
  if (event.capacity > 0) turn_.policy.capacity = event.capacity;
}

// A lease lasts as long as the store's answer says, so what is held keeps its time until its next renewal.
void Brain::on(const TimesChanged& event) {
  turn_.policy.lease = event.lease;
  turn_.policy.poll = event.poll;
  turn_.policy.drain_batch = event.drain_batch;
  turn_.policy.drain_interval = event.drain_interval;
}

void Brain::on(const LeaseNews& event) {
  leases_.hear(event, fleet_.cameras, turn_);
  const Camera* camera = find_in(fleet_.cameras, event.camera);
  if (camera != nullptr && camera->lease.elsewhere) drain_.picked_up(event.camera);
}

void Brain::on(const TokenHeard& event) {
  Camera* camera = find_in(fleet_.cameras, event.camera);
  if (camera == nullptr) return;
  const auto& right = camera->lease.right;
  camera->payment.hear(event, right ? std::optional(right->grant) : std::nullopt, turn_);
}

void Brain::on(const BinaryChanged&) {
  fleet_.workers.install();
  turn_.note("worker.binary_changed", "another weir-worker is installed: every worker is replaced by it");
}

std::string Brain::why_not_acquire() const {
  if (drain_.active()) return drain_.stopping() ? "stopping" : "draining";
  if (cordoned_) return "cordoned";
  if (cannot_start()) return "no worker starts here";
  return load_.why_not(cameras_behind(fleet_));
}

// ---- the workers' side ----

void Brain::on(const WorkerUp& event) {
  Worker* worker = fleet_.workers.find(event.worker);
  if (worker == nullptr || !worker->process.up(turn_.now) || !starts_.succeeded(turn_.policy.failed_starts)) return;
  turn_.note("runner.workers_start", "workers start again: cameras are taken again");
  for (auto& [id, camera] : fleet_.cameras) camera.reach.gave_up = 0, camera.reach.try_until = {};
}

void Brain::on(const WorkerGone& event) {
  if (fleet_.workers.find(event.worker) == nullptr) return;
  auto [worker, unanswered] = fleet_.workers.remove(event.worker);
  auto killed_for = worker.process.killed_for();
  restart::Ending ending = worker.process.ending(event.code);
  if (ending.crash && !worker.process.killed())
    turn_.warn("worker.crashed", fmt::format("exit code {}{}; another worker takes over", event.code,
                                             event.culprit.empty() ? "" : ", while it served this camera"),
               event.culprit, event.worker);
  forget_worker(event.worker, unanswered, fleet_.cameras);
  CameraId culprit_id = killed_for == restart::Fault::hung ? worker.stuck : event.culprit;
  if (Camera* culprit = find_in(fleet_.cameras, culprit_id); ending.crash && culprit != nullptr) {
    turn_.act(ReportCrash{culprit_id});
    if (++culprit->crashes == 2)
      turn_.warn("camera.alone", "the camera crashed its worker twice and gets one of its own", culprit_id);
  }
  if (ending.failed_start && starts_.failed(turn_.now, turn_.policy.failed_starts))
    turn_.warn("runner.no_workers",
               fmt::format("no worker starts here ({}): cameras are offered to others, and no more are taken",
                           killed_for == restart::Fault::late ? std::string("the worker does not get ready")
                                                              : fmt::format("exit code {}", event.code)));
  shards_.worker_gone(event.worker, ending.crash, turn_.now - worker.process.started(), fleet_, turn_);
}

void Brain::on(const WorkerHeard& event) {
  Worker* worker = fleet_.workers.find(event.worker);
  if (worker == nullptr) return;
  std::set<CameraId> streamed = worker->streaming;
  fleet_.workers.hear(event, fleet_.cameras, turn_);
  shards_.learn_sessions(event, streamed, fleet_, turn_);
  compare_with(event, fleet_, turn_);
  for (const SeenCamera& seen : event.cameras)
    if (Camera* camera = find_in(fleet_.cameras, seen.camera); camera != nullptr && camera->voice.on == event.worker)
      check_seen(*camera, seen);
}

void Brain::check_seen(Camera& camera, const SeenCamera& seen) {
  Voice& voice = camera.voice;
  Reach& reach = camera.reach;
  if (voice.handed_over && seen.streaming && !voice.silence_asked)
    turn_.note("camera.handed_over",
               fmt::format("the camera's one connection moved to another worker: {:.1f} s without it",
                           seconds(turn_.now - *std::exchange(voice.handed_over, {}))),
               seen.camera, voice.on);
  reach.streamed |= seen.streaming;
  if (reach.streamed || reach.letting_go || seen.failures < turn_.policy.unreachable_after || !seen.error) return;
  if (turn_.now < reach.try_until || restart::retry_policy(*seen.error).side != restart::Side::runner) return;
  turn_.warn("camera.unreachable", "this runner cannot reach the camera; another may try", seen.camera, voice.on);
  reach.letting_go = true;
}

// A runner that cannot keep up with what it has takes no more. It needs to have kept up for as long before it does
// again.
void Brain::check_load() {
  if (!load_.look(cameras_behind(fleet_), turn_)) return;
  if (load_.keeps_up())
    return turn_.note("runner.keeps_up", "every camera is looked at as often as wanted: cameras are taken again");
  turn_.warn("runner.behind",
             fmt::format("this runner does not keep up: {}; no further cameras are taken", why_not_acquire()));
}

// A runner whose workers do not start offers the cameras that it holds to others, and takes no more.
void Brain::offer_cameras() {
  if (!starts_.offer_due(turn_.now, turn_.policy.failed_starts)) return;
  for (auto& [id, camera] : fleet_.cameras)
    if (camera.holding() && camera.voice.on == 0) camera.reach.letting_go = true;
}

// The idle worker shows when workers start again; where none is kept, the runner risks a camera now and then.
bool Brain::cannot_start() const {
  return starts_.none_starts(turn_.policy.failed_starts) && (turn_.policy.spare || !starts_.rested(turn_.now));
}

// ---- what it says ----

CameraPhase Brain::phase_of(const Camera& camera) const {
  if (camera.leaving || (!camera.desired && !camera.idle())) return CameraPhase::leaving;
  if (camera.voice.on != 0) return CameraPhase::running;
  if (!camera.lease.right) return CameraPhase::waiting;
  if (camera.payment.refused()) return CameraPhase::budget;
  return camera.voice.busy != 0 ? CameraPhase::starting : CameraPhase::held;
}

const lease::HolderState* Brain::holder(const CameraId& camera) const {
  const Camera* found = find_in(fleet_.cameras, camera);
  return found == nullptr ? nullptr : &found->lease.holder;
}

Summary Brain::summary() const {
  const auto& [cameras, workers] = fleet_;
  Summary out;
  out.why_not = why_not_acquire();
  out.acquiring = out.why_not.empty();
  out.draining = drain_.active() && std::ranges::any_of(cameras, [](const auto& each) { return !each.second.idle(); });
  for (const auto& [id, camera] : cameras) {
    out.desired += camera.desired;
    out.owned += camera.holding();
    out.pending += camera.desired && !camera.holding() && !camera.lease.elsewhere;
    CameraView view{.camera = id, .phase = phase_of(camera), .version = camera.lease.holder.version,
                    .valid_until = camera.lease.holder.valid_until, .worker = camera.voice.on,
                    .shard = shards_.shard_of(id).value_or(-1), .alone = camera.alone()};
    if (const Worker* worker = workers.find(camera.voice.on)) view.silent = worker->process.silent_for(turn_.now);
    out.cameras.push_back(std::move(view));
  }
  out.behind = cameras_behind(fleet_);
  out.workers_silent = static_cast<int>(std::ranges::count_if(workers.all, [](const auto& each) {
    return each.second.process.phase() == restart::Supervised::Phase::running && each.second.process.silent();
  }));
  out.shards = shards_.count();
  out.workers = static_cast<int>(workers.all.size());
  return out;
}

}  // namespace weir::runner
