// CrashRecord: when a thread crashes, the camera it served is written where the parent can read it.
//
// Decoders and models are foreign code that can be made to crash by what a camera sends. `Serving` marks the camera that
// this thread works on; the signal handler writes the mark to a file opened beforehand and lets the signal go its way.
// `install` once, before threads start; Serving on any thread.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/result.hpp"

namespace weir::worker {

// SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT write {"camera_uuid","signal"} to `path`; "" only to stderr.
Status install_crash_record(const std::string& path);

class Serving {
 public:
  explicit Serving(const CameraId& camera);
  ~Serving();
  Serving(const Serving&) = delete;

 private:
  const char* before_;
};

}  // namespace weir::worker
