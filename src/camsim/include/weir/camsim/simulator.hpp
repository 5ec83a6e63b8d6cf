// Simulator: all recorders and cameras of a process, and the one way to command them.
//
// Calls block: briefly for most, for seconds where a profile must be encoded for the first time. Any thread.
#pragma once

#include "weir/camsim/config.hpp"
#include "weir/camsim/fault.hpp"

#include <memory>

namespace weir::camsim {

class Simulator {
 public:
  Simulator(std::string footage_file, std::string cache_dir);
  ~Simulator();
  Simulator(const Simulator&) = delete;

  // Adds a recorder with its cameras; where one of them fails, nothing is added.
  Status add_recorder(const RecorderSpec& spec);
  Status add_camera(const std::string& recorder, const CameraSpec& spec);
  Status set_camera_fault(const std::string& camera, const CameraFault& fault);
  Status set_recorder_fault(const std::string& recorder, const RecorderFault& fault);

  json::array cameras() const;  // name, url, user, phase_ms, loop_ms, loop_frames, fps, fault, sessions, frames_sent …
  json::array recorders() const;
  json::object dials() const;
  void reset_dials();

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace weir::camsim
