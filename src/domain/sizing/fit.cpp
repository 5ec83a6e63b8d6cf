#include "weir/sizing/fit.hpp"

#include <algorithm>
#include <cmath>

namespace weir::sizing {

namespace {

constexpr int kCamerasMax = 100'000;  // what a runner may announce

struct Parts {
  double decoding = 0, looking = 0;  // processor milliseconds a second
};

Parts parts_of(const Costs& costs, const Kind& kind, double moving) {
  double looks = std::min(kind.looks_fps, kind.stream_fps);
  double keyframes = std::min(kind.stream_fps, 1 / kind.keyframe_interval_s);
  double receive = kind.stream_fps * costs.decode_ms * kReceiveShare;
  Parts full{kind.stream_fps * costs.decode_ms * kInTurns,
             looks * (costs.gate_ms * kInTurns + costs.detect_ms * (1 + kReportShare))};
  Parts still{keyframes * costs.keyframe_ms * kInTurns, keyframes * costs.gate_ms * kInTurns};
  return {receive + moving * full.decoding + (1 - moving) * still.decoding,
          moving * full.looking + (1 - moving) * still.looking};
}

int whole(double cameras) { return static_cast<int>(std::clamp(std::floor(cameras), 0.0, double{kCamerasMax})); }

}  // namespace

std::string_view to_string(Limit limit) {
  switch (limit) {
    case Limit::detector: return "detector";
    case Limit::decoding: return "decoding";
    case Limit::memory: return "memory";
  }
  return "";
}

double camera_ms(const Costs& costs, const Kind& kind, double moving) {
  Parts parts = parts_of(costs, kind, moving);
  return parts.decoding + parts.looking;
}

double camera_mb(const Kind& kind, const Machine& machine) {
  constexpr double kPictures = 4;  // that a camera's decoder, gate and mailbox hold
  double worker = kWorkerMb + kDetectorMb * std::ceil(machine.processors);
  return kPictures * 1.5 * kind.width * kind.height / 1e6 + worker / kCamerasPerWorker;
}

Fit fit(const Costs& costs, const Kind& kind, const Machine& machine, double moving) {
  Parts parts = parts_of(costs, kind, moving);
  double cost = parts.decoding + parts.looking;
  int by_processors = cost > 0 ? whole(kBusyShare * machine.processors * 1000 / cost) : kCamerasMax;
  int by_memory = machine.memory_mb > 0 ? whole(kMemoryShare * machine.memory_mb / camera_mb(kind, machine)) : kCamerasMax;
  if (by_memory < by_processors) return {by_memory, Limit::memory};
  return {by_processors, parts.looking > parts.decoding ? Limit::detector : Limit::decoding};
}

}  // namespace weir::sizing
