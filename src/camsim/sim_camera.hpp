// SimCamera: one simulated camera: the factory of its sessions' pipelines, and the fault it is under.
//
// Each session has a pipeline of its own (source of coded pictures, payloader, the server's RTP part), which exists
// only while a client is connected; all take their pictures from the Feeder. GLib thread only.
#pragma once

#include "feeder.hpp"
#include "weir/camsim/config.hpp"
#include "weir/camsim/fault.hpp"

#include <gst/rtsp-server/rtsp-server.h>

namespace weir::camsim {

inline constexpr const char* kViewer = "viewer";  // the role that may watch

class SimCamera {
 public:
  SimCamera(CameraSpec spec, const Profile& profile, LoopPtr loop, std::shared_ptr<Feeder> feeder);
  SimCamera(const SimCamera&) = delete;

  const std::string& name() const { return spec_.name; }
  const Profile& profile() const { return profile_; }                  // without a fault
  Codec codec() const { return live_->loop.load()->profile().codec; }  // now
  GstRTSPMediaFactory* factory() const { return factory_.get(); }
  const CameraFault& fault() const { return fault_; }
  // `loop` is what the camera shows under this fault. Faults of connections are the recorder's part.
  void set_fault(const CameraFault& fault, LoopPtr loop);
  json::object describe() const;

 private:
  static void on_media(GstRTSPMediaFactory*, GstRTSPMedia* media, gpointer self);
  std::string pipeline_text() const;
  bool garbage_is_over() const;

  // Constant after construction.
  const CameraSpec spec_;
  const Profile profile_;
  const std::shared_ptr<CameraLive> live_;
  const Ref<GstRTSPMediaFactory> factory_;
  const std::shared_ptr<Feeder> feeder_;
  // GLib thread only.
  CameraFault fault_;
};

}  // namespace weir::camsim
