// The settings of a worker: how it dials, decodes, detects, and keeps what it cannot publish.
// Constant; any thread.
#pragma once

#include "weir/base/settings.hpp"
#include "weir/net/addressee.hpp"

#include <fmt/format.h>

namespace weir::worker {

inline constexpr SettingSpec kSettings[] = {
    {"prom_worker_port", SettingKind::integer, "9108", "port",
     "Where a worker serves metrics and its control endpoints on loopback; the next free port above it "
     "where it is taken, any free one for 0.", "worker runner up", 0, 65535},
    {"readiness_quorum_pct", SettingKind::integer, "80", "%",
     "A worker is ready when at least this share of its cameras delivers pictures; one that shall "
     "replace another, when it delivers this share of what that one does.", "worker runner up", 1, 100},
    {"status_summary_interval_s", SettingKind::number, "5", "s", "How often a worker sums up each camera's status.",
     "worker runner up", 0.1, 3600},
    {"grace_timeout_s", SettingKind::number, "15", "s",
     "How long a worker may take to drain: to stop its cameras and have its last events confirmed.",
     "worker runner up detector", 1, 3600},
    {"outage_grace_s", SettingKind::number, "300", "s",
     "How long a worker goes on decoding and keeps what it sees on disk while nobody says whose camera it is, and an "
     "orchestrator's children keep the connections that they have.",
     "worker runner up orchestrator", 1, 86400},
    {"adaptive_keyframe_max_s", SettingKind::number, "1", "s",
     "Adaptive decoding applies to cameras that send a keyframe at least this often.", "worker runner up detector",
     0.1, 60},
    {"connect_timeout_s", SettingKind::number, "5", "s",
     "How long a camera, or a forwarder's hub, may take to answer a dial.",
     "worker runner up egress stream-worker detector", 0.5, 120},
    {"stall_timeout_s", SettingKind::number, "4", "s",
     "A camera that sends no picture for this long, or a hub that sends a forwarder nothing, counts as "
     "stalled and is dialled again.", "worker runner up egress stream-worker detector", 0.5, 3600},
    {"dial_concurrency", SettingKind::integer, "8", "dials",
     "How many cameras of one site are dialled at the same time, by all workers of a runner together.",
     "worker runner up detector", 1, 1000},
    {"source_mode", SettingKind::text, "direct", "direct|go2rtc",
     "Whether a worker reads its RTSP cameras itself or through a go2rtc on its machine, which has one session with each "
     "camera however many programs read it; snapshots, files and cameras over UDP are always read directly.",
     "worker runner up"},
    {"go2rtc_api", SettingKind::text, "http://127.0.0.1:1984", "URL",
     "go2rtc's API, on loopback; used where source_mode is go2rtc.", "worker runner up"},
    {"go2rtc_rtsp_base", SettingKind::text, "rtsp://127.0.0.1:8554", "URL",
     "Where go2rtc offers its streams, on loopback; used where source_mode is go2rtc.", "worker runner up"},
    {"inference_threads", SettingKind::integer, "0", "threads",
     "How many pictures a worker looks at in parallel; 0 means one a core.", "worker runner up detector", 0, 256},
    {"models_dir", SettingKind::text, "", "path",
     "Where models lie: efficientdet-lite0.tflite, NAME.tflite, NAME.onnx, with NAME.txt for labels; "
     "empty means the folder share/weir/models beside the programs.", "worker labels up runner size stream-worker"},
    {"library_dir", SettingKind::text, "", "path",
     "Where libtensorflowlite_c.so and libonnxruntime.so.1 lie; empty means lib/weir beside the "
     "programs, then the system's.", "worker up runner size stream-worker detector"},
    {"spool_dir", SettingKind::text, "", "path",
     "Where a worker keeps events that cannot be published now; empty means state_dir/spool. One runner a folder.",
     "worker runner up"},
    {"spool_bytes_max", SettingKind::integer, "268435456", "bytes",
     "How much one worker may keep in its spool, at most 32 MiB of it a camera; beyond it the oldest "
     "events of the camera with the most are dropped and counted.", "worker runner up", 1048576, 1099511627776},
};

inline Status check_settings(const Settings& s) {
  for (auto [name, scheme] : {std::pair{"go2rtc_api", "http://"}, {"go2rtc_rtsp_base", "rtsp://"}}) {
    std::string url = s.text(name);
    std::string host = url.starts_with(scheme) ? url.substr(std::string_view(scheme).size()) : "";
    bool ends_in_port = host.find_last_not_of("0123456789") == host.rfind(':') && !host.ends_with(':');
    if (!ends_in_port || !net::names_loopback(host))
      return s.refused(name, fmt::format("{} with 127.0.0.1, localhost or [::1] and a port, and nothing after it", scheme));
  }
  return ok();
}

}  // namespace weir::worker
