#include "weir/runner/leases.hpp"

namespace weir::runner {

using lease::Operation;
using lease::Outcome;
using lease::Phase;

namespace {

constexpr Duration kNewsSpread = 200ms;

// The feed says that another has the lease now. Only the store decides, so it is asked at once; where a question is
// open, again after its answer, which may be older than the news.
void ask_about_news(Lease& lease, Instant now) {
  if (lease.holder.phase != Phase::holding || lease.holder.open) return;
  if (std::exchange(lease.news, {}) > lease.holder.version) lease.holder.next_ask = now;
}

}  // namespace

void Leases::feed(Camera& camera, const lease::HolderEvent& event, Turn& turn) {
  Lease& lease = camera.lease;
  lease::HolderStep made = lease::step(lease.holder, event, turn.now, turn.policy.lease, boot_);
  lease.holder = std::move(made.next);
  for (lease::HolderAction& action : made.actions) {
    if (auto* send = std::get_if<lease::SendQuestion>(&action)) {
      questions_.push_back(std::move(send->question));
    } else if (auto* speak = std::get_if<lease::Speak>(&action)) {
      bool new_grant = !lease.right || lease.right->grant != speak->grant;
      if (new_grant) begin_grant(camera, turn);
      // The store says only once which spool may be adopted; the brain keeps that until a worker was told.
      if (!speak->adopt && !new_grant && camera.voice.on == 0) speak->adopt = lease.right->adopt;
      speak->fresh |= lease.fresh();
      lease.right = std::move(*speak);
    } else if (std::holds_alternative<lease::StopCamera>(action)) {
      turn.note("camera.lost", "another owner has the camera, or it was taken away", camera.id(), camera.voice.on);
      camera.voice.lost = camera.voice.on != 0;
      camera.voice.after.reset();
      lease.right.reset();
      camera.leaving = false;
    }
    // DropSpool: a worker drops what belongs to another tenure when it hears of the loss or of the new grant.
  }
}

void Leases::begin_grant(Camera& camera, const Turn& turn) {
  camera.payment.owe();
  camera.lease.granted_at = turn.wall;
  camera.reach.streamed = camera.voice.joined = false;
  camera.voice.after.reset();
  camera.voice.handed_over.reset();
}

void Leases::wake(Cameras& cameras, Turn& turn) {
  for (auto& [id, camera] : cameras)
    if (auto due = lease::wake_at(camera.lease.holder, turn.policy.lease); due && turn.now >= *due)
      feed(camera, lease::TimePassed{}, turn);
}

void Leases::acquire(Cameras& cameras, Turn& turn) {
  int used = 0;
  std::vector<Camera*> candidates;
  for (auto& [id, camera] : cameras) {
    if (!camera.idle()) ++used;
    else if (camera.desired && camera.at_rest() && turn.now >= camera.lease.try_at) candidates.push_back(&camera);
  }
  int room = turn.policy.room() - used;
  if (room <= 0 || candidates.empty()) return;
  std::ranges::stable_sort(candidates, {}, [](const Camera* camera) { return camera->lease.try_at; });
  candidates.resize(std::min(candidates.size(), static_cast<size_t>(room)));
  for (Camera* camera : candidates) feed(*camera, lease::Wanted{}, turn);
}

// A batch is one statement in the store, and the control plane reads no more than a thousand in one.
void Leases::flush(Turn& turn) {
  constexpr size_t kAskedAtOnce = 500;
  auto questions = std::exchange(questions_, {});
  for (auto operation : {Operation::acquire, Operation::renew, Operation::release}) {
    AskLeases ask;
    for (lease::Question& question : questions) {
      if (question.operation != operation) continue;
      if (ask.questions.size() == kAskedAtOnce) turn.act(std::exchange(ask, {}));
      ask.questions.push_back(std::move(question));
    }
    if (!ask.questions.empty()) turn.act(std::move(ask));
  }
}

void Leases::hear(const LeaseNews& event, Cameras& cameras, Turn& turn) {
  Camera* camera = find_in(cameras, event.camera);
  if (camera == nullptr) return;
  Lease& lease = camera->lease;
  lease.elsewhere = !event.free && event.runner != runner_;
  if (!event.free) return;
  // The least loaded runner asks first.
  auto owned = std::ranges::count_if(cameras, [](const auto& each) { return each.second.holding(); });
  double load = static_cast<double>(owned) / std::max(1, turn.policy.capacity);
  if (camera->idle())
    lease.try_at = turn.now + from_seconds(seconds(kNewsSpread) * std::min(1.0, load) * (0.75 + 0.25 * turn.draw()));
  lease.news = std::max(lease.news, event.version);
  ask_about_news(lease, turn.now);
}

void Leases::hear(const HoldersHeard& event, Cameras& cameras) {
  for (const auto& [id, version] : event.others)
    if (Camera* camera = find_in(cameras, id); camera != nullptr && camera->idle())
      camera->lease.elsewhere |= version >= camera->lease.news;
}

void Leases::hear(const LeasesHeard& event, Cameras& cameras, Turn& turn) {
  for (const LeasesHeard::One& each : event.answers)
    if (Camera* camera = find_in(cameras, each.camera)) hear(*camera, each.event, turn);
}

void Leases::hear(Camera& camera, const lease::HolderEvent& event, Turn& turn) {
  Lease& lease = camera.lease;
  const auto* answered = std::get_if<lease::Answered>(&event);
  bool expected = answered != nullptr && lease.holder.open && lease.holder.open->id == answered->question;
  bool asked_for_it = expected && lease.holder.open->operation == Operation::acquire;
  bool was_ours = expected && lease.holder.open->operation == Operation::renew;
  feed(camera, event, turn);
  ask_about_news(lease, turn.now);
  if (!expected) return;
  const lease::Answer& answer = answered->answer;
  lease.answered_at = turn.now;
  // The news will tell whether a lost camera is another's or free.
  if (answer.outcome != Outcome::lost) lease.elsewhere = answer.outcome == Outcome::held;
  if (answer.why == lease::Refusal::boot_dead)
    turn.end(60, "the last will of this boot was carried out while it lived");
  if (answer.outcome == Outcome::kept) {
    Reach& reach = camera.reach;
    reach.letting_go = false;
    reach.try_until = turn.now + std::min<Duration>(16min, 1min * (1 << std::min(reach.gave_up, 4)));
    ++reach.gave_up;
  }
  // Another owner has the camera: news, or the slow poll, will bring the next try.
  if (lease.holder.phase == Phase::acquiring && !lease.holder.open) {
    feed(camera, lease::Unwanted{}, turn);
    bool settling = answer.why == lease::Refusal::settling;
    // A camera that was taken from us may be free again by now: deleted and registered anew, or disabled and enabled.
    Duration pause = was_ours || (settling && asked_for_it) ? Duration(1s) : turn.policy.poll;
    lease.try_at = turn.now + from_seconds(seconds(pause) * (0.5 + turn.draw()));
    camera.reach.letting_go = false;
  }
}

}  // namespace weir::runner
