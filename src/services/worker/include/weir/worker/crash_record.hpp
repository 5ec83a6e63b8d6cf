// CrashRecord: when a thread crashes, the camera it served is written where the parent can read it.
//
// Decoders and models are foreign code that can be made to crash by what a camera sends. `Serving` marks the camera
// that this thread works on; the signal handler writes the mark to a file opened beforehand and lets the signal go
// its way. Perhaps nobody reads the process's stderr any more, so the line there is written last and is never waited
// for. `install` once, before threads start; Serving on any thread.
#pragma once

#include "weir/base/ids.hpp"
#include "weir/base/result.hpp"

#include <string_view>

namespace weir::worker {

// SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT write {"camera_uuid","signal"} to `path`; "" only to stderr.
Status install_crash_record(const std::string& path);

// Writes the last line of a process that must end now, but not where a pipe or a terminal takes no more. A page at
// most. May be called in a signal handler.
void write_unless_full(int fd, std::string_view text);

class Serving {
 public:
  explicit Serving(const CameraId& camera);
  ~Serving();
  Serving(const Serving&) = delete;

 private:
  const char* before_;
};

}  // namespace weir::worker
