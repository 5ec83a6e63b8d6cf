#include "weir/stream/machine.hpp"

#include "stepper.hpp"

#include <algorithm>

namespace weir::stream {

Step step(State state, const Event& event, Instant now, const Policy& policy, const Draw& draw) {
  Stepper stepper(std::move(state), now, policy, draw);
  std::visit([&](const auto& each) { stepper.on(each); }, event);
  stepper.settle();
  return stepper.take();
}

namespace {

// A start that waits for nothing but its time.
std::optional<Instant> start_due(const State& s, Role role) {
  const Child& child = s.child(role);
  bool blocked = child.alive() || child.window.given_up || !s.lease.sure() || s.lease.fresh_asked;
  if (blocked || !s.ready_for(role)) return std::nullopt;
  return child.window.next_start;
}

}  // namespace

std::optional<Instant> wake_at(const State& s, const Policy& policy) {
  if (!s.surveyed) return std::nullopt;
  std::optional<Instant> earliest;
  auto due = [&](std::optional<Instant> at) {
    if (at) earliest = std::min(earliest.value_or(*at), *at);
  };
  bool waits_for_publisher = (s.session() && s.phase != Phase::stopping) || s.phase == Phase::stopped;
  if (waits_for_publisher && s.publisher.gone_since) due(*s.publisher.gone_since + policy.disconnect_grace);
  for (Role role : {Role::worker, Role::forwarder}) {
    const Child& child = s.child(role);
    if (child.life == Life::stopping) due(child.since + policy.stop_grace);
    if (child.alive() && child.life != Life::killed && s.lease.silent_since)
      due(*s.lease.silent_since + policy.outage_grace);
    due(start_due(s, role));
  }
  return earliest;
}

}  // namespace weir::stream
