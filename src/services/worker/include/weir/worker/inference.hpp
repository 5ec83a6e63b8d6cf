// InferencePool: the threads that look at pictures.
//
// Each thread has detectors of its own, made when a camera first asks for one. A model that cannot be loaded, or fails,
// costs the cameras that use it a MODEL_ERROR and is tried again as its policy says; the others go on. A model that no
// picture has asked for during `idle_most` is unloaded when another one is loaded, unless it was preloaded. `stop` and
// the destructor let a running inference finish. Any thread.
#pragma once

#include "weir/ports/detector.hpp"
#include "weir/worker/reporter.hpp"
#include "weir/worker/scheduler.hpp"

#include <thread>

namespace weir::worker {

// The status record of a camera, while it exists.
using StatusOf = std::function<std::shared_ptr<CameraStatus>(const CameraId&)>;

class InferencePool {
 public:
  // `preload`: models that every thread loads before it takes its first picture.
  InferencePool(Scheduler& scheduler, Reporter& reporter, DetectorFactory make, StatusOf status_of, int threads,
                std::vector<camera::Model> preload = {}, Duration idle_most = 10min);
  ~InferencePool();
  InferencePool(const InferencePool&) = delete;
  void stop();
  double pictures_per_second() const;
  // The cameras whose pictures a detector has been busy with for longer than this.
  std::vector<CameraId> stuck(Duration patience) const;

 private:
  class Thread;
  Scheduler& scheduler_;
  Reporter& reporter_;
  const DetectorFactory make_;
  const StatusOf status_of_;
  const std::vector<camera::Model> preload_;
  const Duration idle_most_;
  mutable std::mutex mutex_;
  RateMeter meter_;
  struct Busy {
    CameraId camera;
    Instant since{};
  };
  std::map<const Thread*, Busy> busy_;
  std::vector<std::jthread> threads_;
};

}  // namespace weir::worker
