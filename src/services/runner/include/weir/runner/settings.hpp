// The settings of a runner: what it is called, how many cameras and workers it takes, and how it hands them over.
// Constant; any thread.
#pragma once

#include "weir/base/settings.hpp"

namespace weir::runner {

inline constexpr SettingSpec kSettings[] = {
    {"runner_id", SettingKind::text, "", "id", "This runner's name; empty means the host's name.", "runner"},
    {"api_key", SettingKind::secret, "", "key",
     "What a runner or a command buys its tokens with (`weir key add`); empty means `--token-file` where "
     "given, else the key in auth_secret_file, which a runner on the control plane's own machine can "
     "read.", "runner admin orchestrator cluster"},
    {"capacity_streams", SettingKind::integer, "0", "cameras",
     "How many cameras a runner takes; 0 means as many as its machine can look at, which its first start "
     "measures and keeps in state_dir/machine.json (docs/sizing.md). What `weir node capacity` says "
     "beats both.", "runner up", 0, 100000},
    {"target_streams_per_shard", SettingKind::integer, "12", "cameras", "How many cameras share one worker.",
     "runner up", 1, 1000},
    {"max_workers", SettingKind::integer, "0", "workers",
     "The most workers of a runner, those of cameras that need one of their own not counted; 0 means as "
     "many as its cameras need.", "runner up", 0, 10000},
    {"max_cameras_per_worker", SettingKind::integer, "16", "cameras", "An upper bound on target_streams_per_shard.",
     "runner up", 1, 1000},
    {"prom_manager_port", SettingKind::integer, "9107", "port",
     "Where a runner serves metrics and health; the next free one of the six ports below it where it is "
     "taken (workers look above), any free one for 0.", "runner up", 0, 65535},
    {"prom_manager_host", SettingKind::text, "127.0.0.1", "address", "The address that goes with prom_manager_port.",
     "runner up"},
    {"heartbeat_interval_s", SettingKind::number, "1", "s", "How often a runner says that it lives.",
     "runner", 0.1, 60},
    {"lease_retry_interval_s", SettingKind::number, "10", "s",
     "How often a runner asks again for a camera that somebody else has, beside what the lease feed tells it.",
     "runner up", 0.5, 3600},
    {"rollout", SettingKind::text, "live", "live|bluegreen",
     "How cameras join a running worker: added to it, or with a new worker that replaces it.", "runner up"},
    {"drain_batch", SettingKind::integer, "4", "cameras",
     "How many cameras a soft drain hands over at a time (`weir up`: all).", "runner up", 1, 10000},
    {"drain_interval_s", SettingKind::number, "1", "s", "The shortest time between two batches of a soft drain.",
     "runner up", 0, 3600},
    {"drain_timeout_s", SettingKind::number, "60", "s",
     "How long a runner that was asked to stop may take to hand its cameras over (that of `weir up`: 5); "
     "what is left then is let go at once.", "runner up", 1, 86400},
    {"cpu_high_pct", SettingKind::number, "100", "%",
     "Above this load of the machine, for ten heartbeats, a runner takes no further cameras; 100 means "
     "never, because a busy runner that takes over is better than none.", "runner up", 1, 100},
    {"mem_high_pct", SettingKind::number, "92", "%",
     "Above this use of the machine's memory, for ten heartbeats, a runner takes no further cameras.",
     "runner up", 1, 100},
    {"runner_tenant", SettingKind::text, "", "id", "A runner takes cameras of this tenant only; empty means all.",
     "runner"},
    {"runner_site", SettingKind::text, "", "id", "A runner takes cameras of this site only; empty means all.",
     "runner"},
    {"deployment_group", SettingKind::text, "", "word", "Shown beside the runner, for operators.", "runner"},
    {"deployment_version", SettingKind::text, "", "word", "Shown beside the runner; empty means Weir's version.",
     "runner"},
};

}  // namespace weir::runner
