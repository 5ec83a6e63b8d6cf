// The settings of a process of a detector cluster: which cluster it is, and its workers. Constant; any thread.
#pragma once

#include "weir/base/settings.hpp"

namespace weir::cluster {

inline constexpr SettingSpec kSettings[] = {
    {"cluster_name", SettingKind::text, "default", "id",
     "The detector cluster: cameras with `processing: cluster` name it, and its processes share one lease of this name.",
     "cluster"},
    {"cluster_process_id", SettingKind::text, "", "id",
     "This process's name within its cluster; empty means cluster-HOST-PORT, of the host and of `listen`.", "cluster"},
    {"cluster_tenant", SettingKind::text, "", "id",
     "The tenant that the cluster serves; empty means all, or that of its API key.", "cluster"},
    {"cluster_lease_ttl_s", SettingKind::number, "6", "s",
     "How long a cluster stays with a master that does not answer.", "cluster", 3, 60},
    {"detector_workers", SettingKind::secret, "", "URLs",
     "The detection workers of a cluster, with commas between: ws://host:8000,wss://…. `weir up` starts a process of a "
     "cluster where some are named.", "cluster up"},
    {"detector_capacity", SettingKind::integer, "100", "subscriptions", "How many subscriptions one detection worker gets.",
     "cluster up", 1, 100000},
    {"detector_token_file", SettingKind::text, "", "path",
     "A token that a cluster shows to every detection worker, and `weir worker detector` asks for; empty means none.",
     "cluster detector up"},
    {"detector_ca_file", SettingKind::text, "", "path",
     "Certificates (PEM) of the authorities that a worker's wss:// address may come from, besides those that the system "
     "knows.", "cluster up"},
    {"redis_host", SettingKind::text, "", "host",
     "The Redis that the processes of a cluster share; empty means none, for a cluster of one process. Each cluster needs "
     "a Redis of its own.", "cluster"},
    {"redis_port", SettingKind::integer, "6379", "port", "The port of `redis_host`.", "cluster", 1, 65535},
    {"redis_password", SettingKind::secret, "", "password", "The password of `redis_host`; empty means none.", "cluster"},
    {"detect_debug", SettingKind::flag, "false", "",
     "Logs every command, report, plan and request of a cluster's process.", "cluster"},
};

}  // namespace weir::cluster
