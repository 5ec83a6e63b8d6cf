// A camera's next step towards where it should be.
#include "weir/runner/brain.hpp"

namespace weir::runner {

void Brain::step(Camera& camera) {
  Voice& voice = camera.voice;
  if (voice.busy != 0 || turn_.now < voice.retry_at) return;
  if (!camera.may_speak()) return let_go(camera);
  if (voice.on == 0 && !camera.payment.paid()) {
    if (camera.payment.ask(turn_.now))
      turn_.act(AskToken{camera.id(), camera.wish.config.site, camera.lease.right->grant});
    return;
  }
  WorkerNumber target = shards_.target_of(camera, fleet_.workers, turn_);
  if (target == 0) return;
  auto& sources = fleet_.workers.find(target)->sources;
  // Whoever was told to be silent is believed to speak until it has confirmed that, and speaks again under a fresh
  // version.
  if (voice.on == target && !voice.silence_asked) {
    bool changed = sources[camera.id()].version != camera.wish.version;
    if (changed && !needs_new_model(camera, fleet_.workers)) hand_over(camera, target, fleet_, turn_);
    return;
  }
  if (voice.on != 0) {
    if (!heard_just_now(camera)) return;
    if (camera.few() && !voice.handed_over) voice.handed_over = turn_.now;
    return take_away(camera, sources.contains(camera.id()) ? Message::silence : Message::remove, fleet_, turn_);
  }
  if (camera.lease.fresh()) return hand_over(camera, target, fleet_, turn_);
  if (!camera.lease.holder.rotate) leases_.feed(camera, lease::FreshVersionNeeded{}, turn_);
}

// It should not be spoken for here: first its worker falls silent, then whoever stands by lets go of it, then its lease
// is offered to others or released.
void Brain::let_go(Camera& camera) {
  bool lost = camera.voice.lost;
  if (camera.voice.on != 0) return take_away(camera, lost ? Message::lose : Message::remove, fleet_, turn_);
  camera.voice.lost = false;
  if (take_from_standby(camera, fleet_, turn_)) return;
  if (camera.reach.letting_go && camera.wanted() && camera.holding()) {
    if (!camera.lease.holder.letting_go) leases_.feed(camera, lease::Unreachable{}, turn_);
    return;
  }
  if (camera.wanted()) return;
  if (camera.holding() || camera.lease.holder.phase == lease::Phase::acquiring) {
    camera.lease.right.reset();
    camera.reach.letting_go = false;
    leases_.feed(camera, lease::Unwanted{}, turn_);
  }
  if (camera.idle() && !drain_.active()) camera.leaving = false;
}

// After a worker was silenced, its successor needs a fresh version: so the brain asks first whether the store is
// there. An outage that has begun since the last renewal would leave the camera without a speaker until the outage
// ends.
bool Brain::heard_just_now(Camera& camera) {
  constexpr Duration kJustNow = 300ms;
  Lease& lease = camera.lease;
  if (camera.voice.silence_asked || !fleet_.workers.running(camera.voice.on)) return true;
  if (lease.answered() && turn_.now < lease.answered_at + kJustNow) return true;
  if (lease.answered() && !lease.holder.open) lease.holder.next_ask = turn_.now;
  leases_.feed(camera, lease::TimePassed{}, turn_);
  return false;
}

}  // namespace weir::runner
