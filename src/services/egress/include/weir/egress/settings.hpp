// The settings of a forwarder: which stream it reads, where it sends it, and when it gives up.
// Constant; any thread.
#pragma once

#include "weir/base/settings.hpp"

#include <fmt/format.h>

namespace weir::egress {

inline constexpr SettingSpec kSettings[] = {
    {"log_bytes_max", SettingKind::integer, "10485760", "bytes",
     "A log file of a forwarder or stream worker that has reached this becomes FILE.1, and a new one begins; 0 means "
     "no bound.",
     "egress stream-worker", 0, 1099511627776},
    {"stream_id", SettingKind::text, "", "id",
     "The published stream: letters, digits, '_' and '-'. A stream worker reads live/<stream_id>/in and publishes "
     "live/<stream_id>/out, which a forwarder reads.", "egress stream-worker"},
    {"run_id", SettingKind::text, "", "id",
     "The run of the stream that a forwarder or stream worker belongs to: the same for all its instances.",
     "egress stream-worker"},
    {"instance_id", SettingKind::text, "", "id",
     "This process's own name within its run: another one for every start.", "egress stream-worker"},
    {"egress_enabled", SettingKind::flag, "false", "",
     "Whether a forwarder forwards; if not, it says so and ends with 0.", "egress"},
    {"mediamtx_rtsp_base", SettingKind::secret, "rtsp://mediamtx:8554", "URL",
     "The hub that streams are read from and published to, rtsp:// or rtsps://; user and password may stand in it.",
     "egress stream-worker orchestrator"},
    {"dest_rtmp_url", SettingKind::secret, "", "URL",
     "The destination of a forward, rtmp://host/app/key or rtmps://…; give it in a settings file or by a "
     "descriptor (--config /dev/fd/3), because flags and environment can be read by others.", "egress"},
    {"dest_tls_verify", SettingKind::flag, "true", "",
     "Whether the certificate of an rtmps:// destination must be valid.", "egress"},
    {"dest_ca_file", SettingKind::text, "", "path",
     "Certificates (PEM) of the authorities that an rtmps:// destination may come from; empty means "
     "those that the system knows.", "egress"},
    {"dest_connect_timeout_s", SettingKind::number, "10", "s",
     "How long a destination may take from the dial to its consent to publish.", "egress", 0.5, 120},
    {"dest_stall_timeout_s", SettingKind::number, "8", "s",
     "A destination that acknowledges nothing of what it was sent for this long is dead, whatever its connection says.",
     "egress stream-worker", 1, 120},
    {"input_not_ready_grace_seconds", SettingKind::integer, "30", "s",
     "How long a forwarder or stream worker waits for a stream that is not there, at its start and whenever the "
     "stream was lost.",
     "egress stream-worker", 0, 86400},
    {"retry_base_delay_ms", SettingKind::integer, "500", "ms",
     "The delay of a forwarder or stream worker before the first retry; each next one is twice as long.",
     "egress stream-worker", 1, 3600000},
    {"retry_max_delay_ms", SettingKind::integer, "10000", "ms", "The longest such delay.", "egress stream-worker", 1,
     3600000},
    {"retry_jitter_ms", SettingKind::integer, "250", "ms", "At most this much is added to each delay at random.",
     "egress stream-worker", 0, 3600000},
    {"retry_max_attempts", SettingKind::integer, "0", "retries",
     "How many times in a row a destination is tried again before the process ends with 40; 0 means for ever.",
     "egress stream-worker", 0, 1000000},
    {"prom_egress_port", SettingKind::integer, "9208", "port",
     "Where a forwarder serves metrics on loopback; the next free port above it where it is taken, any free one for 0.",
     "egress", 0, 65535},
    {"lease_version", SettingKind::integer, "0", "",
     "The version under which a supervisor started a forwarder or stream worker.",
     "egress stream-worker", 0, 9e18},
    {"lease_valid_until_us", SettingKind::integer, "0", "µs",
     "The point on this machine's CLOCK_BOOTTIME until which the process may send; 0 means for ever.",
     "egress stream-worker", 0, 9e18},
    {"lease_socket", SettingKind::text, "", "path",
     "A Unix socket where a supervisor extends that time; empty means none.", "egress stream-worker"},
};

inline Status check_settings(const Settings& s) {
  std::int64_t longest = s.integer("retry_max_delay_ms");
  if (s.integer("retry_base_delay_ms") <= longest) return ok();
  return s.refused("retry_base_delay_ms", fmt::format("at most retry_max_delay_ms, which is {}", longest));
}

}  // namespace weir::egress
