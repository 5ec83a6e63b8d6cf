// The brain's workers: which processes there should be, their health, and how one replaces another.
#include "weir/runner/brain.hpp"

#include <algorithm>

namespace weir::runner {

using lease::Phase;

namespace {
constexpr Duration kDetectorPatience = 10s;
constexpr Duration kNoStartPause = 30s, kOfferAgain = 5s;
constexpr Duration kReaped = 2s;  // after a kill
constexpr int kStuckLooks = 6;  // one that was stopped and goes on needs a moment
constexpr int kStillLooks = 2;
}  // namespace

bool Brain::running(WorkerNumber number) const {
  auto found = workers_.find(number);
  return found != workers_.end() && found->second.phase == WorkerPhase::running && !found->second.killed;
}

WorkerNumber Brain::start_worker(shard::ShardNumber shard, bool standby, const std::vector<const Camera*>& cameras) {
  WorkerNumber number = ++last_worker_;
  Worker& worker = workers_[number];
  worker.shard = shard;
  worker.binary = binary_;
  worker.started = worker.heard = moment_.now;
  StartWorker start{number, shard, standby};
  for (const Camera* camera : cameras) {
    worker.sources[camera->holder.camera] = {camera->wish.version, camera->wish.config.model};
    start.sources.push_back(camera->wish.config);
  }
  std::set<std::pair<std::string, std::string>> models;
  for (const auto& [id, camera] : cameras_)
    if (const camera::Model& model = camera.wish.config.model; camera.desired && model.detector != "none")
      models.emplace(model.detector, model.name);
  for (const auto& [detector, name] : models) start.models.push_back({detector, name});
  actions_.push_back(std::move(start));
  return number;
}

void Brain::kill(WorkerNumber number, std::string why) {
  auto found = workers_.find(number);
  if (found == workers_.end() || std::exchange(found->second.killed, true)) return;
  found->second.killed_at = moment_.now;
  actions_.push_back(KillWorker{number, std::move(why)});
}

void Brain::tell(WorkerNumber worker, Message what, std::vector<TellItem> items) {
  for (const TellItem& item : items)
    if (auto camera = cameras_.find(item.camera); camera != cameras_.end()) camera->second.busy = messages_ + 1;
  tell_aside(worker, what, std::move(items));
}

void Brain::tell_aside(WorkerNumber worker, Message what, std::vector<TellItem> items) {
  std::uint64_t message = ++messages_;
  actions_.push_back(Tell{worker, message, what, items});
  sent_.emplace(message, Sent{worker, what, std::move(items)});
}

// Why a running worker is not one, or "". One that does not answer and uses no processor time is stopped or frozen; one
// that uses some may only be slow.
std::string Brain::what_ails(const Worker& worker) const {
  Duration silent = moment_.now - worker.heard;
  if (worker.idle && silent > policy_.frozen_after)
    return fmt::format("it has not answered for {:.1f} s and uses no processor time: it is frozen", seconds(silent));
  if (silent > policy_.silence_limit) return "it has not answered for too long";
  if (worker.still_looks >= kStillLooks) return "all its cameras stand still, and it has not noticed";
  return "";
}

void Brain::check_health() {
  for (auto& [number, worker] : workers_) {
    if (worker.killed) continue;
    if (worker.phase == WorkerPhase::starting && moment_.now - worker.heard > policy_.start_grace) {
      worker.late = true;
      kill(number, "it did not get ready in time");
    } else if (worker.phase == WorkerPhase::draining && moment_.now - worker.heard > policy_.rollout_times.drain_within) {
      kill(number, "it did not drain within its grace");
    } else if (worker.phase == WorkerPhase::running && worker.stuck_looks >= kStuckLooks) {
      worker.hung = true;
      note("worker.hung", "a thread of its worker hangs with it: a new worker takes over", worker.stuck, number, true);
      kill(number, fmt::format("a thread of it hangs with camera {}", worker.stuck.str()));
    } else if (std::string why = worker.phase == WorkerPhase::running ? what_ails(worker) : ""; !why.empty()) {
      note("worker.frozen", why + "; another worker takes over", {}, number, true);
      kill(number, std::move(why));
    }
  }
}

int Brain::cameras_behind() const {
  return static_cast<int>(std::ranges::count_if(cameras_, [&](const auto& each) {
    auto worker = workers_.find(each.second.on);
    return worker != workers_.end() && worker->second.behind.contains(each.first);
  }));
}

// A runner that cannot keep up with what it has takes no more. It needs to have kept up for as long before it does again.
void Brain::check_load() {
  int behind = cameras_behind();
  if ((behind > 0) == !keeps_up_) return behind_since_.reset();
  if (!behind_since_) behind_since_ = moment_.now;
  if (moment_.now < *behind_since_ + policy_.overload_after) return;
  behind_since_.reset();
  keeps_up_ = behind == 0;
  if (keeps_up_) return note("runner.keeps_up", "every camera is looked at as often as wanted: cameras are taken again");
  note("runner.behind",
       fmt::format("this runner does not keep up: {}; no further cameras are taken", why_not_acquire()), {}, 0, true);
}

// An owner that cannot is not an owner: whose workers do not start offers what it holds to others, and takes no more.
void Brain::check_starts(const Worker& gone, int code) {
  bool failed = gone.phase == WorkerPhase::starting && (!gone.killed || gone.late);
  if (!failed) return;
  failed_start_at_ = moment_.now;
  if (++failed_starts_ != policy_.failed_starts) return;
  note("runner.no_workers",
       fmt::format("no worker starts here ({}): cameras are offered to others, and no more are taken",
                   gone.late ? std::string("it does not get ready") : fmt::format("exit code {}", code)),
       {}, 0, true);
}

void Brain::offer_cameras() {
  if (failed_starts_ < policy_.failed_starts || moment_.now < offer_at_) return;
  offer_at_ = moment_.now + kOfferAgain;
  for (auto& [id, camera] : cameras_)
    if (camera.holder.phase == Phase::holding && camera.on == 0) camera.letting_go = true;
}

void Brain::workers_start() {
  if (std::exchange(failed_starts_, 0) < policy_.failed_starts) return;
  note("runner.workers_start", "workers start again: cameras are taken again");
  for (auto& [id, camera] : cameras_) camera.gave_up = 0, camera.try_reach_until = {};
}

// The idle worker shows when they start again; where none is kept, a camera is risked now and then.
bool Brain::cannot_start() const {
  return failed_starts_ >= policy_.failed_starts && (policy_.spare || moment_.now < failed_start_at_ + kNoStartPause);
}

// ---- shards ----

void Brain::plan() {
  std::vector<shard::Member> members;
  for (const auto& [id, camera] : cameras_)
    if (camera.right && camera.holder.phase == Phase::holding && camera.desired && !camera.leaving)
      members.push_back({id, camera.wish.config.site, camera.alone()});
  assignment_ = shard::plan(members, assignment_, policy_.shard_size);
}

// A process that was killed and does not end (the kernel holds it) must not keep its shard without one; nor must one
// that drains and whose successor died. Its cameras are taken from it when its right has run out (silence_failed).
void Brain::detach_ended() {
  for (auto& [number, worker] : workers_)
    if (worker.killed && moment_.now >= worker.killed_at + kReaped) leave_shard(number, false, {});
  for (auto& [number, shard] : shards_)
    if (auto blue = workers_.find(shard.blue); shard.green == 0 && blue != workers_.end())
      if (blue->second.phase == WorkerPhase::draining) shard.blue = 0;
}

// Every shard of the plan has a worker; a worker without a shard is drained.
void Brain::man_shards() {
  detach_ended();
  std::set<shard::ShardNumber> used;
  for (const auto& [camera, number] : assignment_) used.insert(number);
  for (shard::ShardNumber number : used) {
    Shard& shard = shards_[number];
    if (shard.blue != 0 || shard.green != 0 || moment_.now < shard.loop.next_start()) continue;
    if (spare_ != 0 && workers_.at(spare_).shard == number && !workers_.at(spare_).killed &&
        workers_.at(spare_).phase != WorkerPhase::draining) {
      shard.blue = std::exchange(spare_, 0);
    } else if (running(spare_) && workers_.at(spare_).binary == binary_) {
      take_spare(number);
    } else {
      shard.blue = start_worker(number, false, {});
    }
  }
  used.clear();  // a shard that took the idle worker has its label now
  for (const auto& [camera, number] : assignment_) used.insert(number);
  for (auto it = shards_.begin(); it != shards_.end();) {
    auto& [number, shard] = *it;
    bool busy = std::ranges::any_of(cameras_, [&](const auto& each) {
      return each.second.on != 0 && (each.second.on == shard.blue || each.second.on == shard.green);
    });
    if (used.contains(number) || busy) {
      ++it;
      continue;
    }
    for (WorkerNumber worker : {shard.blue, shard.green}) {
      auto found = workers_.find(worker);
      if (found == workers_.end() || found->second.phase == WorkerPhase::draining) continue;
      if (found->second.phase == WorkerPhase::starting) {
        kill(worker, "it is not needed any more");
      } else {
        found->second.phase = WorkerPhase::draining;
        found->second.heard = moment_.now;
        tell_aside(worker, Message::drain, {});
      }
    }
    it = shards_.erase(it);
  }
}

// A worker without cameras ends by itself; one that cannot be asked yet has nothing to lose.
void Brain::dismiss(WorkerNumber number) {
  auto found = workers_.find(number);
  if (found == workers_.end() || found->second.phase == WorkerPhase::draining) return;
  if (found->second.phase == WorkerPhase::starting) return kill(number, "it is not needed any more");
  found->second.phase = WorkerPhase::draining;
  found->second.heard = moment_.now;
  tell(number, Message::drain, {});
}

// The idle worker's label becomes the shard's.
void Brain::take_spare(shard::ShardNumber number) {
  shard::ShardNumber label = workers_.at(spare_).shard;
  auto shard = shards_.extract(number);
  shard.mapped().blue = std::exchange(spare_, 0);
  shard.key() = label;
  shards_.insert(std::move(shard));
  for (auto& [camera, assigned] : assignment_)
    if (assigned == number) assigned = label;
}

shard::ShardNumber Brain::free_label() const {
  std::set<shard::ShardNumber> used;
  for (const auto& [number, shard] : shards_) used.insert(number);
  for (const auto& [number, worker] : workers_) used.insert(worker.shard);
  shard::ShardNumber label = 0;
  while (used.contains(label)) ++label;
  return label;
}

void Brain::keep_spare() {
  bool wanted = policy_.spare && !draining() && listed_;
  if (spare_ != 0 && (!wanted || workers_.at(spare_).binary != binary_)) {
    dismiss(spare_);
    return;
  }
  if (!wanted || spare_ != 0 || moment_.now < spare_loop_.next_start()) return;
  spare_ = start_worker(free_label(), false, {});
}

// ---- rollouts ----

bool Brain::needs_rollout(shard::ShardNumber number, const Shard& shard) const {
  if (!running(shard.blue) || shard.green != 0) return false;
  const Worker& blue = workers_.at(shard.blue);
  for (const auto& [id, camera] : cameras_)
    if (camera.on == shard.blue && !camera.answered()) return false;
  // A new program comes to one shard after the other.
  bool others_roll = std::ranges::any_of(
      shards_, [](const auto& each) { return each.second.rollout.phase != rollout::Phase::steady; });
  if (blue.binary != binary_ && !others_roll) return true;
  for (const auto& [id, camera] : cameras_) {
    if (!assigned_to(id, number) || !may_have(camera)) continue;
    if (camera.on == shard.blue && needs_new_model(camera)) return true;
    bool joins = camera.on == 0 && camera.busy == 0 && camera.paid && !camera.joined && !blue.filling &&
                 !blue.sources.contains(id);
    if (joins && policy_.rollout == rollout::Mode::bluegreen) return true;
  }
  return false;
}

// Pictures arrive before the model is loaded: a camera that moved then would be blind for so long. Where nothing moves
// none is looked at, so that is waited for with patience only.
bool Brain::shows(const Worker& green, const CameraId& camera) const {
  bool patience_over = moment_.now >= green.started + kDetectorPatience;
  return green.streaming.contains(camera) && (patience_over || !green.unseen.contains(camera));
}

// What blue delivers now must go on; a camera that nobody gets pictures of must not hold the others up.
bool Brain::green_ready(const Shard& shard) const {
  const Worker& green = workers_.at(shard.green);
  auto blue = workers_.find(shard.blue);
  if (!green.looked_at || blue == workers_.end()) return green.looked_at;
  int wanted = 0, delivered = 0;
  for (const CameraId& camera : blue->second.streaming) {
    if (!green.sources.contains(camera)) continue;
    ++wanted;
    delivered += shows(green, camera);
  }
  return delivered * 100 >= policy_.quorum_pct * wanted;
}

void Brain::roll_out() {
  for (auto& [number, shard] : shards_) {
    auto in_shard = [this, at = number](const CameraId& id) { return assigned_to(id, at); };
    if (auto blue = workers_.find(shard.blue); blue != workers_.end() && blue->second.filling)
      blue->second.filling = std::ranges::any_of(cameras_, [&](const auto& each) {
        return in_shard(each.first) && may_have(each.second) && each.second.on != shard.blue;
      });
    if (shard.rollout.phase == rollout::Phase::steady) {
      if (needs_rollout(number, shard)) roll(number, shard, rollout::Needed{});
      continue;
    }
    if (shard.rollout.phase == rollout::Phase::warming && running(shard.green)) {
      if (green_ready(shard)) roll(number, shard, rollout::GreenReady{});
    }
    if (shard.rollout.phase == rollout::Phase::moving) {
      bool left = std::ranges::any_of(cameras_, [&](const auto& each) {
        const Camera& camera = each.second;
        return camera.on == shard.blue ||
               (in_shard(each.first) && may_have(camera) && camera.paid && camera.on != shard.green);
      });
      bool store_away = std::ranges::any_of(cameras_, [&](const auto& each) {
        return in_shard(each.first) && each.second.right && !each.second.answered();
      });
      if (!left) roll(number, shard, rollout::AllMoved{});
      else if (store_away) roll(number, shard, rollout::StoreAway{});
    }
    roll(number, shard, rollout::TimePassed{});
  }
}

void Brain::roll(shard::ShardNumber number, Shard& shard, const rollout::Event& event) {
  rollout::Phase before = shard.rollout.phase;
  rollout::Step made = rollout::step(shard.rollout, event, moment_.now, policy_.rollout_times, draw());
  shard.rollout = made.next;
  for (const rollout::Action& action : made.actions) {
    if (std::holds_alternative<rollout::StartGreen>(action)) {
      std::vector<const Camera*> standing_by;
      for (const auto& [id, camera] : cameras_)
        if (assigned_to(id, number) && may_have(camera) && !camera.few() && camera.paid) standing_by.push_back(&camera);
      shard.green = start_worker(number, true, standing_by);
      workers_.at(shard.green).filling = false;
      note("rollout.warming", "a new worker stands by", {}, shard.green);
    } else if (std::holds_alternative<rollout::DrainBlue>(action)) {
      if (auto blue = workers_.find(shard.blue); blue != workers_.end()) {
        blue->second.phase = WorkerPhase::draining;
        blue->second.heard = moment_.now;
      }
      tell_aside(shard.blue, Message::drain, {});
    } else if (std::holds_alternative<rollout::KillBlue>(action)) {
      kill(shard.blue, "it did not drain within its grace");
    } else if (std::holds_alternative<rollout::KillGreen>(action)) {
      note("rollout.given_up", "the new worker did not get ready in time: the old one goes on", {}, shard.green, true);
      kill(shard.green, "given up");
    } else if (std::holds_alternative<rollout::PromoteGreen>(action)) {
      shard.blue = std::exchange(shard.green, 0);
      workers_.at(shard.blue).filling = true;
      note("rollout.done", "the new worker has taken over", {}, shard.blue);
    }
  }
  bool unfinished = before == rollout::Phase::warming || before == rollout::Phase::moving;
  if (unfinished && std::holds_alternative<rollout::GreenGone>(event))
    note("rollout.given_up", "the new worker ended before it had taken over: the old one goes on", {}, 0, true);
  if (before == rollout::Phase::warming && shard.rollout.phase == rollout::Phase::moving)
    note("rollout.moving", "the new worker is ready: its cameras are moved", {}, shard.green);
}

}  // namespace weir::runner
