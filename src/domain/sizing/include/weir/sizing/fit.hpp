// Sizing: how many cameras of one kind a machine can look at, from what their pictures cost there.
//
// A camera whose scene moves costs every picture's receiving and decoding, and every look's gate and detector. A still
// scene costs the receiving of every picture, and of its keyframes alone decoding and gate (adaptive decoding; see
// weir/motion). Both are processor time a second; what fits is what `kBusyShare` of the processors is enough for, the
// rest being for peaks and for everything else that runs there. Memory bounds it as well.
//
// Costs are processor time as measured with all processors at work, not time on a clock: what else runs on the machine
// changes them little. Plain values and pure functions; any thread.
#pragma once

#include "weir/base/json.hpp"

#include <string_view>

namespace weir::sizing {

// Cameras get no more than this share of the processors, so that a scene that wakes up does not make the others late.
constexpr double kBusyShare = 0.85;
// Cameras get no more than this share of the memory, for the same reason.
constexpr double kMemoryShare = 0.75;
// What a runner assumes of cameras that it has not seen yet: half of their scenes move.
constexpr double kUsualMotion = 0.5;
// The next three were measured with cameras over RTSP beside `weir size` (docs/sizing.md has the figures): a machine that
// is being sized has no camera yet. Receiving a picture, in parts of decoding it:
constexpr double kReceiveShare = 0.05;
// A camera's pictures come one by one, among those of others; decoding and gate cost more then than in a row.
constexpr double kInTurns = 1.15;
// What a look costs beside gate and detector (zones, the event, its publishing), in parts of the detector's cost.
constexpr double kReportShare = 0.07;
// A worker's memory without cameras, and that of each of its detectors (the default model), of which it has one a
// processor; and how many cameras share a worker.
constexpr double kWorkerMb = 34, kDetectorMb = 42;
constexpr int kCamerasPerWorker = 12;
// Where the machine could not be measured: a little less than a server's processor of 2023 does.
constexpr int kCamerasPerProcessor = 6;

struct Kind {
  int width = 1920, height = 1080;
  double stream_fps = 25;      // as the camera sends
  double looks_fps = 6;        // max_fps: as often it is looked at
  double keyframe_interval_s = 1;
};

// Processor milliseconds a picture, at one resolution.
struct Costs {
  double decode_ms = 0;        // one of a stream that is decoded in full
  double keyframe_ms = 0;      // a keyframe decoded alone
  double gate_ms = 0;          // the motion gate's look
  double detect_ms = 0;        // the detector's look
};
template <class V>
void fields(V& v, Costs& c) {
  auto positive = json::range(0.0, 1e6);
  v.required("decode_ms", c.decode_ms, positive);
  v.required("keyframe_ms", c.keyframe_ms, positive);
  v.required("gate_ms", c.gate_ms, positive);
  v.required("detect_ms", c.detect_ms, positive);
}

struct Machine {
  double processors = 1;       // that this process may use; a quota may leave a part of one
  double memory_mb = 0;        // 0: not known, and no bound
};

enum class Limit { detector, decoding, memory };
std::string_view to_string(Limit limit);

struct Fit {
  int cameras = 0;
  Limit limit = Limit::detector;  // what most of it goes into
};

// Processor milliseconds a second that one camera costs while `moving` of its time (0 to 1) something moves.
double camera_ms(const Costs& costs, const Kind& kind, double moving);
// Memory of one camera, with its share of a worker.
double camera_mb(const Kind& kind, const Machine& machine);
Fit fit(const Costs& costs, const Kind& kind, const Machine& machine, double moving);

}  // namespace weir::sizing
