// The settings of a stream worker that other processes do not share: what it does with a published stream's pictures.
// Constant; any thread.
#pragma once

#include "weir/base/settings.hpp"

namespace weir::stream_worker {

inline constexpr SettingSpec kSettings[] = {
    {"stream_mode", SettingKind::text, "annotate", "annotate|passthrough",
     "What a stream worker does with a published stream: draws what it detects into the pictures, or hands them on as "
     "they are.", "stream-worker"},
    {"rtmp_output", SettingKind::flag, "false", "",
     "Whether a stream worker publishes what RTMP carries, H.264 and AAC, whatever comes in. An orchestrator that knows "
     "a destination of the stream asks for it.", "stream-worker"},
    {"max_fps", SettingKind::number, "5", "pictures/s", "How many pictures a second a stream worker looks at, at most.",
     "stream-worker", 0.1, 60},
    {"stream_min_score", SettingKind::number, "0.4", "", "Detections that are less certain than this are neither drawn nor published.",
     "stream-worker", 0.01, 1},
    {"stream_detector", SettingKind::text, "tflite", "tflite|onnx|hog", "The detector that looks at a published stream.",
     "stream-worker"},
    {"stream_model", SettingKind::text, "", "name", "Its model in models_dir; empty means the detector's own default.",
     "stream-worker"},
    {"keyframe_s", SettingKind::number, "2", "s",
     "A stream worker that encodes makes a keyframe this often: a viewer who joins waits for one.",
     "stream-worker", 0.2, 30},
    {"bitrate_kbit", SettingKind::integer, "0", "kbit/s",
     "How much an encoded stream may use on average; 0 means by the size of its pictures, 2500 at 1280x720 and 25 "
     "pictures a second.", "stream-worker", 0, 200000},
    {"hardware_encoder", SettingKind::flag, "true", "",
     "Whether a stream worker encodes with the machine's hardware where FFmpeg offers an encoder for it and that "
     "encoder opens.", "stream-worker"},
    {"stream_owner", SettingKind::text, "", "id",
     "The orchestrator that holds the stream's lease. With control_plane_url, worker_token_file, stream_tenant and "
     "stream_site it makes a stream worker publish what it sees.", "stream-worker"},
    {"stream_tenant", SettingKind::text, "", "id", "The stream's tenant, in the events.", "stream-worker"},
    {"stream_site", SettingKind::text, "", "id", "The stream's site, in the events.", "stream-worker"},
    {"worker_token_file", SettingKind::text, "", "path",
     "The token with which a stream worker publishes. Its orchestrator writes a fresh one there in good time.",
     "stream-worker"},
    {"prom_stream_port", SettingKind::integer, "0", "port",
     "Where a stream worker serves metrics on loopback; the next free port above it where it is taken, any free one "
     "for 0.", "stream-worker", 0, 65535},
};

}  // namespace weir::stream_worker
