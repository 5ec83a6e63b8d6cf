#include "network.hpp"

namespace weir::sim {

Duration Network::latency() {
  if (faulty() && faults_.delay && rng_.chance(0.1)) return rng_.between(50ms, 3s);
  return rng_.between(1ms, 40ms);
}

bool Network::lost(Wire& wire) {
  if (!faulty() || !faults_.loss || !rng_.chance(0.08)) return false;
  wire.in_trouble_until(time_.now());
  return true;
}

void Network::request(Wire& wire, const std::shared_ptr<Process>& from, std::function<Reply()> work, Reply refused) {
  int copies = faulty() && faults_.duplication && rng_.chance(0.05) ? 2 : 1;
  for (int copy = 0; copy < copies; ++copy) {
    if (lost(wire)) continue;
    Duration delay = latency();
    if (delay > kHarmless) wire.in_trouble_until(time_.now() + delay.count());
    time_.in(delay, [=, this, &wire] {
      if (time_.now() < wire.cut_out_until) return;
      serve(wire, from, work, refused, time_.now());
    });
  }
}

void Network::serve(Wire& wire, const std::shared_ptr<Process>& from, const std::function<Reply()>& work,
                    const Reply& refused, TrueTime arrived) {
  TrueTime now = time_.now();
  Reply reply = refused;
  if (now < troubles_.store_down_until || now < wire.unauthorized_until) {
    // 503 or 401: an answer that says nothing about the lease.
  } else if (now < troubles_.store_stalled_until) {
    // Waits on the stalled store; the statement's time-out ends most of these, but not all.
    if (now - arrived < 800'000) {
      time_.at(std::min(troubles_.store_stalled_until, arrived + 800'000),
               [=, this, &wire] { serve(wire, from, work, refused, arrived); });
      return;
    }
  } else {
    reply = work();
    served_();
  }
  if (lost(wire)) return;
  Duration delay = latency();
  if (delay > kHarmless) wire.in_trouble_until(now + delay.count());
  time_.in(delay, [=, this, &wire] {
    if (time_.now() < wire.cut_in_until) return;
    Timeline::deliver(from, reply);
  });
}

}  // namespace weir::sim
