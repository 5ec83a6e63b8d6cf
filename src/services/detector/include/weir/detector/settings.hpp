// The settings of a detection worker of a cluster that other processes do not share: from where it fetches models and
// snapshots, and how it looks at pictures. Constant; any thread.
#pragma once

#include "weir/base/settings.hpp"

namespace weir::detector {

inline constexpr SettingSpec kSettings[] = {
    {"detector_model_hosts", SettingKind::text, "", "hosts",
     "From which hosts `weir worker detector` fetches models, with commas between, each with a port or for all of its "
     "ports: plane.example:8080,models.example. Empty means those of control_plane_url, else this machine alone.",
     "detector"},
    {"detector_snapshot_hosts", SettingKind::text, "", "hosts",
     "From which hosts `weir worker detector` fetches cameras' snapshots, written as detector_model_hosts; empty means "
     "every host that a camera may stand on.",
     "detector"},
    {"detector_models_dir", SettingKind::text, "", "path",
     "Where `weir worker detector` keeps the models that it has fetched; empty means state_dir/detector-models. One "
     "worker a folder.",
     "detector"},
    {"detector_max_fps", SettingKind::number, "5", "pictures/s",
     "How many pictures a second of each camera `weir worker detector` looks at, at most.", "detector", 0.1, 60},
    {"detector_min_score", SettingKind::number, "0.4", "",
     "What `weir worker detector` is less certain of than this it does not report.", "detector", 0.01, 1},
    {"detector_motion_gate", SettingKind::flag, "true", "",
     "Whether `weir worker detector` looks only at pictures in which something moves.", "detector"},
};

}  // namespace weir::detector
