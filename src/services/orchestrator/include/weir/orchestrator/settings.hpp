// The settings of an orchestrator: where MediaMTX is, how a stream is processed, and how failures are retried.
// Constant; any thread.
#pragma once

#include "weir/base/settings.hpp"

namespace weir::orchestrator {

inline constexpr SettingSpec kSettings[] = {
    {"orchestrator_id", SettingKind::text, "", "id", "This orchestrator's name; empty means the host's name.",
     "orchestrator"},
    {"orchestrator_tenant", SettingKind::text, "default", "id",
     "The tenant of streams that nobody has named in the control plane before they were published.", "orchestrator"},
    {"orchestrator_site", SettingKind::text, "default", "id", "The site that goes with orchestrator_tenant.",
     "orchestrator"},
    {"mediamtx_api", SettingKind::secret, "http://127.0.0.1:9997", "URL",
     "MediaMTX's control API, with user and password where it wants them.", "orchestrator"},
    {"hook_token_file", SettingKind::text, "", "path",
     "The token that hooks must send; empty means none, which an orchestrator accepts on a loopback address only.",
     "orchestrator"},
    {"streams_file", SettingKind::text, "", "path",
     "A YAML file with settings by stream id: forward, destination, mode, max_fps, preferences.", "orchestrator"},
    {"destination_from_query", SettingKind::flag, "false", "",
     "Whether a publisher may name the RTMP destination in its query string.", "orchestrator"},
    {"worker_command", SettingKind::text, "", "JSON array",
     "The program that processes a stream instead of Weir's own, as an argument vector in which {stream_id}, {run_id}, "
     "{instance_id}, {input_url} and {output_url} are replaced.", "orchestrator"},
    {"stream_lease_ttl_s", SettingKind::number, "30", "s",
     "How long a stream stays with an orchestrator that does not answer.", "orchestrator", 3, 60},
    {"disconnect_grace_s", SettingKind::number, "10", "s",
     "How long a publisher may be away before its stream is wound down.", "orchestrator", 0, 3600},
    {"restart_max_per_10_min", SettingKind::integer, "6", "restarts",
     "How often a stream's worker, or its forwarder, is restarted within ten minutes.", "orchestrator", 0, 1000},
    {"restart_cooldown_seconds", SettingKind::number, "60", "s",
     "How long a forwarder that was restarted too often rests.", "orchestrator", 1, 86400},
    {"look_interval_s", SettingKind::number, "3", "s",
     "How often an orchestrator compares what hooks told with MediaMTX's list of paths.", "orchestrator", 0.2, 3600},
};

}  // namespace weir::orchestrator
