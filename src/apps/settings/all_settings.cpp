#include "weir/settings/all_settings.hpp"

#include "weir/cluster/settings.hpp"
#include "weir/control_plane/settings.hpp"
#include "weir/detector/settings.hpp"
#include "weir/egress/settings.hpp"
#include "weir/orchestrator/settings.hpp"
#include "weir/runner/settings.hpp"
#include "weir/stream_worker/settings.hpp"
#include "weir/worker/settings.hpp"

namespace weir {

namespace {

// Where things are: addresses, files and folders.
constexpr SettingSpec kPlaces[] = {
    {"listen", SettingKind::text, "127.0.0.1:8080", "host:port",
     "Where the control plane answers HTTP (`weir orchestrator`: MediaMTX's hooks, on port 8086; `weir cluster`: port "
     "8087; `weir worker detector`: its master, on port 8000); port 0 takes a free one, which the first line on stdout "
     "names.",
     "control-plane up orchestrator cluster detector"},
    {"database_url", SettingKind::secret, "", "URL",
     "The store: sqlite:PATH or postgres://…; empty means SQLite in state_dir/weir.db.", "control-plane store"},
    {"database_pool_size", SettingKind::integer, "16", "connections",
     "How many PostgreSQL connections one control plane opens, and so how many commits share one flush "
     "of the disk; SQLite always has one writer.", "control-plane", 1, 64},
    {"state_dir", SettingKind::text, ".weir", "path",
     "The folder that holds what a single machine keeps: the SQLite store, the secret, the address of `weir up`.",
     "up control-plane token admin worker runner store orchestrator cluster detector"},
    {"auth_secret_file", SettingKind::text, "", "path",
     "The key that signs tokens, created with mode 0600 when absent; empty means state_dir/auth.secret.",
     "control-plane up token admin runner orchestrator cluster"},
    {"control_plane_url", SettingKind::text, "", "URL",
     "The control plane that a client or runner asks; several addresses of it have commas between. Empty "
     "means the one that WEIR_URL names, or that `weir up` started in state_dir. An orchestrator that is given none "
     "keeps its leases itself; a stream worker publishes nothing then.",
     "admin runner stream-worker orchestrator cluster detector"},
    {"control_plane_ca_file", SettingKind::text, "", "path",
     "Certificates (PEM) of the authorities that a control plane's https:// address may come from, "
     "besides those that the system knows.", "admin runner worker stream-worker orchestrator cluster detector"},
    {"events", SettingKind::secret, "", "URL",
     "The RabbitMQ broker that a runner and its workers publish events to: amqp://USER:PASSWORD@HOST:PORT/VHOST, or "
     "amqps:// for TLS; empty means the control plane's own bus.", "runner worker"},
    {"events_ca_file", SettingKind::text, "", "path",
     "Certificates (PEM) of the authorities that the broker of an amqps:// address may have its own from, besides those "
     "that the system knows.", "runner worker"},
};

constexpr SettingSpec kTokensAndLogs[] = {
    {"token_ttl_s", SettingKind::number, "900", "s", "How long a token lives where whoever asks for it does not say.",
     "token control-plane up", 1, 31536000},
    {"log_level", SettingKind::text, "info", "debug|info|warn|error|off",
     "What is logged: this level and the ones after it. A change takes effect while running; a worker, "
     "and the runner of `weir up`, keep the level that they were started with.",
     "control-plane up worker runner egress stream-worker orchestrator cluster detector"},
    {"log_dir", SettingKind::text, "", "path",
     "A folder where the JSON log lines go as well, in weir.log; empty means stderr only (`weir egress` "
     "and `weir worker stream`: the folder logs, in egress-<stream_id>.log and stream-<stream_id>.log).",
     "control-plane up worker runner egress stream-worker orchestrator cluster detector"},
};

}  // namespace

const SettingTable& all_settings() {
  static const SettingTable table({{kPlaces},
                                   {control_plane::kSettings, control_plane::check_settings},
                                   {worker::kSettings, worker::check_settings},
                                   {runner::kSettings},
                                   {kTokensAndLogs},
                                   {egress::kSettings, egress::check_settings},
                                   {stream_worker::kSettings},
                                   {orchestrator::kSettings},
                                   {cluster::kSettings},
                                   {detector::kSettings}});
  return table;
}

}  // namespace weir
