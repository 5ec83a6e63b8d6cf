// `weir-worker measure`: what a picture costs on this machine, measured with the code that will do the work.
//
// A clip is encoded for each size and decoded by the real source on as many threads as there are processors, in full
// and by its keyframe alone; its pictures are shown to the motion gate and to the detector, one detector a thread, as
// the worker's inference threads have them. Costs are the processor time of this process, so that what else runs on
// the machine changes them little. The cost of receiving over the network is not measured; weir/sizing estimates it.
// Main thread only.
#pragma once

#include "common/command.hpp"
#include "size/size_options.hpp"

#include "weir/ports/detector.hpp"
#include "weir/sizing/measurement.hpp"

namespace weir::apps {

struct MeasurePlan {
  SizeOptions streams = {};
  bool quick = false;  // as long as a runner's first start may take
};

// Fails where the clip cannot be encoded or decoded; a detector that cannot be had is only noted.
Result<sizing::Measurement> measure(const MeasurePlan& plan, const DetectorFactory& make);

Command measure_command();

}  // namespace weir::apps
