// The brain's cameras: leases, tokens, drains, and each camera's next step towards where it should be.
#include "weir/runner/brain.hpp"

#include <algorithm>

namespace weir::runner {

using lease::Phase;

// ---- leases ----

void Brain::feed(Camera& camera, const lease::HolderEvent& event) {
  lease::HolderStep made = lease::step(camera.holder, event, moment_.now, policy_.lease, boot_);
  camera.holder = std::move(made.next);
  for (lease::HolderAction& action : made.actions) {
    if (auto* send = std::get_if<lease::SendQuestion>(&action)) {
      questions_.push_back(std::move(send->question));
    } else if (auto* speak = std::get_if<lease::Speak>(&action)) {
      bool new_grant = !camera.right || camera.right->grant != speak->grant;
      if (new_grant) {
        camera.paid = camera.streamed = camera.joined = camera.short_of_budget = false;
        camera.pay_at = {};
        camera.after.reset();
        camera.granted_at = moment_.wall;
        camera.handed_over.reset();
      }
      // What may be adopted is said once; it is kept until a worker was told.
      if (!speak->adopt && !new_grant && camera.on == 0) speak->adopt = camera.right->adopt;
      camera.fresh |= speak->fresh;
      camera.right = std::move(*speak);
    } else if (std::holds_alternative<lease::StopCamera>(action)) {
      note("camera.lost", "another owner has it, or it was taken away", camera.holder.camera, camera.on);
      camera.lost = camera.on != 0;
      camera.right.reset();
      camera.fresh = camera.leaving = false;
      camera.after.reset();
    }
    // DropSpool: a worker drops what belongs to another tenure when it hears of the loss or of the new grant.
  }
}

// A batch is one statement in the store, and the control plane reads no more than a thousand in one.
void Brain::flush_questions() {
  constexpr size_t kAskedAtOnce = 500;
  auto questions = std::exchange(questions_, {});
  for (auto operation : {lease::Operation::acquire, lease::Operation::renew, lease::Operation::release}) {
    AskLeases ask;
    for (lease::Question& question : questions) {
      if (question.operation != operation) continue;
      if (ask.questions.size() == kAskedAtOnce) actions_.push_back(std::exchange(ask, {}));
      ask.questions.push_back(std::move(question));
    }
    if (!ask.questions.empty()) actions_.push_back(std::move(ask));
  }
}

std::string Brain::why_not_acquire() const {
  if (stop_by_) return "stopping";
  if (drain_ != DrainMode::none) return "draining";
  if (cordoned_) return "cordoned";
  if (cannot_start()) return "no worker starts here";
  if (int behind = cameras_behind(); !keeps_up_)
    return fmt::format("{} of its cameras {} looked at less often than wanted", behind, behind == 1 ? "is" : "are");
  return overload_;
}

// Everything that is free is asked for, as much at a time as there is room: all of it might be granted.
void Brain::acquire() {
  if (!why_not_acquire().empty()) return;
  int used = 0;
  std::vector<Camera*> candidates;
  for (auto& [id, camera] : cameras_) {
    if (camera.holder.phase != Phase::idle) ++used;
    else if (camera.desired && camera.on == 0 && camera.busy == 0 && moment_.now >= camera.try_at) candidates.push_back(&camera);
  }
  int room = policy_.room() - used;
  if (room <= 0 || candidates.empty()) return;
  std::ranges::stable_sort(candidates, {}, &Camera::try_at);
  candidates.resize(std::min(candidates.size(), static_cast<size_t>(room)));
  for (Camera* camera : candidates) feed(*camera, lease::Wanted{});
}

// ---- drains ----

// Soft: batch after batch; the next one follows when others have taken this one, or nobody seems to have room.
void Brain::drain() {
  if (!draining()) {
    wave_.clear();
    budgets_.clear();
    return;
  }
  bool hard = drain_ == DrainMode::hard || (stop_by_ && moment_.now >= *stop_by_);
  if (hard) {
    for (auto& [id, camera] : cameras_) camera.leaving = true;
    for (auto& [number, worker] : workers_)
      if (!worker.killed) kill(number, "hard drain");
    return;
  }
  for (auto& [id, released] : wave_)
    if (auto camera = cameras_.find(id); camera == cameras_.end() || camera->second.holder.phase == Phase::idle) released = true;
  bool letting_go = std::ranges::any_of(wave_, [](const auto& each) { return !each.second; });
  bool in_vain = !room_elsewhere_ || moment_.now >= wave_since_ + policy_.pickup_limit;
  bool picked_up = wave_.empty() || (!letting_go && in_vain);
  if (!picked_up || moment_.now < wave_since_ + policy_.drain_interval) return;
  wave_.clear();
  bool waits = room_elsewhere_ && !in_a_hurry();
  for (auto& [id, camera] : cameras_) {
    if (camera.leaving || camera.holder.phase == Phase::idle) continue;
    if (waits && camera.on != 0 && !next_may_dial(camera)) continue;
    camera.leaving = true;
    if (camera.holder.phase == Phase::holding) wave_[id] = false;
    if (std::ssize(wave_) >= policy_.drain_batch) break;
  }
  if (wave_.empty()) return;
  wave_since_ = moment_.now;
  // What is left of each budget is asked for before the next batch, when the next owners have paid for this one.
  for (auto& [site, budget] : budgets_) {
    budget.tokens = 0;
    budget.ask_at = moment_.now + policy_.drain_interval;
  }
}

// What is left would not be handed over any more by the deadline, if it waited for anything.
bool Brain::in_a_hurry() const {
  if (!stop_by_) return false;
  auto left = std::ranges::count_if(cameras_, [](const auto& each) {
    return !each.second.leaving && each.second.holder.phase != Phase::idle;
  });
  auto batches = left / std::max(1, policy_.drain_batch) + 1;
  return moment_.now + 2 * batches * policy_.drain_interval + policy_.lease.ttl >= *stop_by_;
}

// A camera that is let go while its site's budget is used up would be dark until its next owner has a token: it stays
// until there is one, or none has come for as long as a batch is waited for.
bool Brain::next_may_dial(const Camera& camera) {
  const SiteId& site = camera.wish.config.site;
  Budget& budget = budgets_[site];
  if (budget.tokens >= 1) {
    budget.tokens -= 1;
    return true;
  }
  if (budget.empty_since && moment_.now >= *budget.empty_since + policy_.pickup_limit) {
    budget.empty_since = moment_.now;
    return true;
  }
  auto asked = std::ranges::count_if(budgets_, [](const auto& each) { return each.second.asked; });
  if (!budget.asked && moment_.now >= budget.ask_at && asked < policy_.drain_batch) {
    budget.asked = true;
    actions_.push_back(AskBudget{site});
  }
  return false;
}

void Brain::on(const BudgetHeard& event) {
  auto found = budgets_.find(event.site);
  if (found == budgets_.end()) return;
  Budget& budget = found->second;
  budget.asked = false;
  budget.ask_at = moment_.now + 500ms;
  // It is a courtesy to the cameras: without an answer the drain goes on.
  budget.tokens = event.tokens.value_or(policy_.drain_batch);
  if (budget.tokens >= 1) return budget.empty_since.reset();
  if (!budget.empty_since) budget.empty_since = moment_.now;
  if (!std::exchange(budget.told, true))
    note("runner.drain_waits",
         fmt::format("the budget of site {} is used up: its cameras stay here until others may dial them", event.site));
}

void Brain::end_if_done() {
  if (!stop_by_ || ended_) return;
  bool holds = std::ranges::any_of(cameras_, [](const auto& each) {
    return each.second.holder.phase != Phase::idle || each.second.on != 0 || each.second.busy != 0;
  });
  bool all_let_go = !holds && workers_.empty();
  // Whom nobody answers need not wait for ever: the last will does the rest.
  if (!all_let_go && moment_.now < *stop_by_ + policy_.lease.ttl) return;
  ended_ = true;
  actions_.push_back(all_let_go ? End{0, "stopped: every camera was let go"}
                                : End{40, "stopped; not everything could be given back, which is left to the last will"});
}

// ---- a camera's next step ----

bool Brain::may_have(const Camera& camera) const {
  return camera.desired && !camera.leaving && !camera.letting_go && !camera.lost && camera.right &&
         camera.holder.phase == Phase::holding;
}

// A quorum is enough to begin to move; a camera that green does not show yet stays with blue a little longer, and one
// that the store does not answer about for as long as that lasts: silenced, it would wait for a version.
bool Brain::waits_for_green(const Camera& camera, const Shard& shard) const {
  const CameraId& id = camera.holder.camera;
  if (camera.on != shard.blue || !running(shard.blue) || !workers_.contains(shard.green)) return false;
  if (camera.holder.open || !camera.answered()) return true;
  const Worker& green = workers_.at(shard.green);
  bool delivered = !green.sources.contains(id) || shows(green, id);
  bool patient = moment_.now + policy_.rollout_times.ready_within / 2 < shard.rollout.deadline;
  return patient && workers_.at(shard.blue).streaming.contains(id) && !delivered;
}

// The worker that should speak for it now; 0 where there is none yet.
WorkerNumber Brain::target_of(const Camera& camera) const {
  auto assigned = assignment_.find(camera.holder.camera);
  if (assigned == assignment_.end()) return 0;
  auto found = shards_.find(assigned->second);
  if (found == shards_.end()) return 0;
  const Shard& shard = found->second;
  bool moving = shard.rollout.phase == rollout::Phase::moving || shard.rollout.phase == rollout::Phase::draining;
  WorkerNumber target = moving && shard.green != 0 && !waits_for_green(camera, shard) ? shard.green : shard.blue;
  if (!running(target)) return 0;
  // In the blue/green way a camera joins with the next green, unless the worker is still being filled, or greens fail.
  // One that was here already only comes back.
  const Worker& worker = workers_.at(target);
  bool greens_fail = moment_.now < shard.rollout.not_before;
  bool joins_later = policy_.rollout == rollout::Mode::bluegreen && target == shard.blue && !worker.filling && !greens_fail &&
                     !camera.joined && camera.on == 0 && !worker.sources.contains(camera.holder.camera);
  return joins_later ? 0 : target;
}

// A process keeps its detectors: another one comes with another process.
bool Brain::needs_new_model(const Camera& camera) const {
  auto worker = workers_.find(camera.on);
  if (worker == workers_.end()) return false;
  auto given = worker->second.sources.find(camera.holder.camera);
  const camera::Model& model = camera.wish.config.model;
  return given != worker->second.sources.end() &&
         (given->second.model.detector != model.detector || given->second.model.name != model.name);
}

bool Brain::assigned_to(const CameraId& camera, shard::ShardNumber shard) const {
  auto assigned = assignment_.find(camera);
  return assigned != assignment_.end() && assigned->second == shard;
}

void Brain::step(Camera& camera) {
  if (camera.busy != 0 || moment_.now < camera.retry_at) return;
  if (!may_have(camera)) {
    if (camera.on != 0) return take_away(camera, camera.lost ? Message::lose : Message::remove);
    camera.lost = false;
    // Nor does anybody stand by for what is another's.
    for (auto& [number, worker] : workers_)
      if (running(number) && worker.sources.erase(camera.holder.camera) > 0)
        return tell(number, Message::remove, {{camera.holder.camera}});
    if (camera.letting_go && camera.desired && !camera.leaving && camera.holder.phase == Phase::holding) {
      if (!camera.holder.letting_go) feed(camera, lease::Unreachable{});
      return;
    }
    bool wanted = camera.desired && !camera.leaving;
    if (!wanted && (camera.holder.phase == Phase::holding || camera.holder.phase == Phase::acquiring)) {
      camera.right.reset();
      camera.fresh = camera.letting_go = false;
      feed(camera, lease::Unwanted{});
    }
    if (!wanted && camera.holder.phase == Phase::idle && !draining()) camera.leaving = false;
    return;
  }
  if (camera.on == 0 && !camera.paid) {
    if (camera.paying || moment_.now < camera.pay_at) return;
    camera.paying = true;
    actions_.push_back(AskToken{camera.holder.camera, camera.wish.config.site, camera.right->grant});
    return;
  }
  WorkerNumber target = target_of(camera);
  if (target == 0) return;
  // Whoever was told to be silent is believed to speak until it has confirmed that, and speaks again under a fresh version.
  if (camera.on == target && !camera.silence_asked) {
    bool changed = workers_.at(target).sources[camera.holder.camera].version != camera.wish.version;
    if (changed && !needs_new_model(camera)) hand_over(camera, target);
    return;
  }
  if (camera.on != 0) {
    if (!heard_just_now(camera)) return;
    if (camera.few() && !camera.handed_over) camera.handed_over = moment_.now;
    bool stands_by = workers_.at(target).sources.contains(camera.holder.camera);
    return take_away(camera, stands_by ? Message::silence : Message::remove);
  }
  if (!camera.fresh) {
    if (!camera.holder.rotate) feed(camera, lease::FreshVersionNeeded{});
    return;
  }
  hand_over(camera, target);
}

// Who is silenced for a successor waits for a version: so the store is asked first whether it is there. An outage that
// has begun since the last renewal would leave the camera without a voice until its end.
bool Brain::heard_just_now(Camera& camera) {
  constexpr Duration kJustNow = 300ms;
  if (camera.silence_asked || !running(camera.on)) return true;
  if (camera.answered() && moment_.now < camera.answered_at + kJustNow) return true;
  if (camera.answered() && !camera.holder.open) camera.holder.next_ask = moment_.now;
  feed(camera, lease::TimePassed{});
  return false;
}

void Brain::take_away(Camera& camera, Message how) {
  if (!running(camera.on) && workers_.contains(camera.on) && workers_.at(camera.on).phase == WorkerPhase::starting) return;
  if (!camera.silence_asked) camera.silence_asked = moment_.now;
  if (how != Message::silence) workers_.at(camera.on).sources.erase(camera.holder.camera);
  tell(camera.on, how, {{camera.holder.camera}});
}

// Nobody confirmed that the worker is silent (rule 12): a worker all of whose cameras move is ended at once, another one
// when its deadline has passed and a healthy one would have lost its patience with the bus. The deadline alone is not
// enough: whoever may not speak still writes to the disk, and what is found there later would be older than what the next
// voice has said. One that was killed and does not end writes nothing more.
void Brain::silence_failed(Camera& camera, WorkerNumber worker) {
  constexpr Duration kPatience = 6s;
  camera.retry_at = moment_.now + 200ms;
  Instant asked = camera.silence_asked.value_or(moment_.now);
  if (moment_.now < asked + 1s || !workers_.contains(worker)) return;
  bool all_move = std::ranges::all_of(
      cameras_, [&](const auto& each) { return each.second.on != worker || each.second.silence_asked.has_value(); });
  bool past = moment_.now >= camera.told_until;
  if (!workers_.at(worker).killed) {
    if (all_move || (past && moment_.now >= asked + kPatience)) kill(worker, "it does not confirm that it is silent");
  } else if (past) {
    camera.on = 0;
    camera.lost = false;
    camera.silence_asked.reset();
    camera.after = moment_.wall;
  }
}

// A new version for a worker that is to speak; the same one where the worker speaks already and only has to change.
void Brain::hand_over(Camera& camera, WorkerNumber to) {
  Worker& worker = workers_.at(to);
  const CameraId& id = camera.holder.camera;
  bool standing_by = camera.on != to && worker.sources.contains(id);
  TellItem item{.camera = id, .right = camera.right, .after = camera.after};
  if (!standing_by) {
    item.config = camera.wish.config;
    worker.sources[id] = {camera.wish.version, camera.wish.config.model};
  }
  camera.fresh = false;
  tell(to, standing_by ? Message::activate : Message::add, {std::move(item)});
}

void Brain::extend_leases() {
  for (auto& [number, worker] : workers_) {
    if (worker.extending != 0 || worker.phase != WorkerPhase::running || worker.killed) continue;
    if (moment_.now < worker.extend_at) continue;
    std::vector<TellItem> items;
    for (auto& [id, camera] : cameras_) {
      bool due = camera.on == number && camera.busy == 0 && !camera.silence_asked && camera.right && !camera.holder.rotate &&
                 camera.right->valid_until > camera.told_until;
      if (!due) continue;
      items.push_back({.camera = id, .right = camera.right});
      camera.fresh = false;
    }
    if (items.empty()) continue;
    tell_aside(number, Message::extend, std::move(items));
    worker.extending = messages_;
  }
}

// ---- what it says ----

CameraPhase Brain::phase_of(const Camera& camera) const {
  if (camera.leaving || (!camera.desired && camera.holder.phase != Phase::idle)) return CameraPhase::leaving;
  if (camera.on != 0) return CameraPhase::running;
  if (!camera.right) return CameraPhase::waiting;
  if (!camera.paid && camera.short_of_budget) return CameraPhase::budget;
  return camera.busy != 0 ? CameraPhase::starting : CameraPhase::held;
}

const lease::HolderState* Brain::holder(const CameraId& camera) const {
  auto found = cameras_.find(camera);
  return found == cameras_.end() ? nullptr : &found->second.holder;
}

Summary Brain::summary() const {
  Summary out;
  out.why_not = why_not_acquire();
  out.acquiring = out.why_not.empty();
  out.draining = draining() && std::ranges::any_of(cameras_, [](const auto& each) { return each.second.holder.phase != Phase::idle; });
  for (const auto& [id, camera] : cameras_) {
    out.desired += camera.desired;
    out.owned += camera.holder.phase == Phase::holding;
    out.pending += camera.desired && camera.holder.phase != Phase::holding && !camera.elsewhere;
    CameraView view{.camera = id, .phase = phase_of(camera), .version = camera.holder.version,
                    .valid_until = camera.holder.valid_until, .worker = camera.on, .alone = camera.alone()};
    if (auto assigned = assignment_.find(id); assigned != assignment_.end()) view.shard = assigned->second;
    if (auto worker = workers_.find(camera.on); worker != workers_.end() && worker->second.silent_cpu)
      view.silent = moment_.now - worker->second.heard;
    out.cameras.push_back(std::move(view));
  }
  out.behind = cameras_behind();
  out.workers_silent = static_cast<int>(std::ranges::count_if(workers_, [](const auto& each) {
    return each.second.phase == WorkerPhase::running && each.second.silent_cpu.has_value();
  }));
  out.shards = static_cast<int>(shards_.size());
  out.workers = static_cast<int>(workers_.size());
  return out;
}

}  // namespace weir::runner
