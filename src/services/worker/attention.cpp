#include "weir/worker/attention.hpp"

#include <algorithm>

namespace weir::worker {

namespace {
constexpr double kBehindBelow = 0.75, kCaughtUpFrom = 0.9;  // shares of what is wanted
constexpr double kWorthSaying = 0.25;                       // pictures a second that are missing
constexpr double kSaturated = 0.02;                         // of its time that a thread which keeps up waits at least
}  // namespace

void Attention::begin(Instant now) {
  seconds_ = {};
  began_ = second_of(now) + 1;
  behind_ = false;
}

Attention::Second& Attention::second(Instant at) {
  std::int64_t number = second_of(at);
  Second& slot = seconds_[static_cast<size_t>(number) % seconds_.size()];
  if (slot.at != number) slot = {.at = number};
  return slot;
}

void Attention::due(Instant now, bool moves) {
  Second& slot = second(now);
  ++slot.due;
  slot.wanted += moves ? 1 : 0;
}

void Attention::looked(Instant now) { ++second(now).looked; }

void Attention::waited(Instant now, Duration for_a_packet) { second(now).waited += for_a_packet; }

int Attention::counted(Instant now, int most) const {
  return static_cast<int>(std::clamp<std::int64_t>(second_of(now) - began_, 0, most));
}

Attention::Rates Attention::rates(Instant now, double camera_fps, int last_s) const {
  int whole = counted(now, last_s);
  if (whole == 0) return {};
  Second sum;
  for (const Second& each : seconds_) {
    if (each.at < second_of(now) - whole || each.at >= second_of(now)) continue;
    sum.due += each.due;
    sum.wanted += each.wanted;
    sum.looked += each.looked;
    sum.waited += each.waited;
  }
  Rates out{static_cast<double>(sum.wanted) / whole, static_cast<double>(sum.looked) / whole};
  bool saturated = sum.due > 0 && seconds(sum.waited) < kSaturated * whole;
  if (saturated) out.wanted = std::max(out.wanted, camera_fps * sum.wanted / sum.due);
  return out;
}

std::optional<Attention::Rates> Attention::known(Instant now, double camera_fps) const {
  if (counted(now, kKnownAfterS) < kKnownAfterS) return {};
  return rates(now, camera_fps, kSaidOverS);
}

bool Attention::judge(Instant now, double camera_fps) {
  auto misses = [&](int last_s, double share) {
    Rates r = rates(now, camera_fps, last_s);
    return r.looked < share * r.wanted && r.wanted - r.looked >= kWorthSaying;
  };
  if (behind_) behind_ = misses(kWindowS / 2, kCaughtUpFrom);
  else behind_ = counted(now, kWindowS) == kWindowS && misses(kWindowS, kBehindBelow) && misses(kWindowS / 2, kBehindBelow);
  return behind_;
}

}  // namespace weir::worker
