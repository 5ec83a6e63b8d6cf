// The settings of the control plane: how leases, sites, events and connections are bounded.
// A lease's time is among them, because the control plane refuses a wrong one; runners read the same rows.
// Constant; any thread.
#pragma once

#include "weir/base/settings.hpp"

#include <fmt/format.h>

namespace weir::control_plane {

inline constexpr SettingSpec kSettings[] = {
    {"lease_ttl_s", SettingKind::number, "6", "s",
     "How long a lease lasts without a renewal, as runners ask for it: shorter takes over sooner, longer "
     "forgives slower networks.", "control-plane up runner", 1, 3600},
    {"lease_renew_interval_s", SettingKind::number, "2", "s",
     "How often a holder renews its leases; at most half of lease_ttl_s, so that one lost renewal costs nothing.",
     "control-plane up runner", 0.1, 1800},
    {"lease_ttl_min_s", SettingKind::number, "3", "s",
     "The shortest lease a runner may ask for; shorter ones are refused, not stretched.", "control-plane up", 1, 3600},
    {"lease_ttl_max_s", SettingKind::number, "60", "s",
     "The longest lease a runner may ask for; also how long nothing changes hands after commits may have been lost.",
     "control-plane up store", 1, 3600},
    {"runner_live_s", SettingKind::number, "10", "s", "A runner counts as live for this long after its last heartbeat.",
     "control-plane up", 1, 3600},
    {"budget_capacity", SettingKind::integer, "10", "tokens",
     "How many cameras of a new site may be dialled at once before its bucket is empty.", "control-plane up", 1, 10000},
    {"budget_refill_per_min", SettingKind::number, "60", "tokens/min",
     "How quickly a new site's bucket fills again, continuously.", "control-plane up", 0, 100000},
    {"create_places", SettingKind::flag, "true", "",
     "Whether a camera that an administrator adds over the API makes the tenant and the site that it names, where they "
     "do not exist; `weir camera add` makes none but with `--create`.",
     "control-plane up"},
    {"event_retention_s", SettingKind::number, "3600", "s",
     "How long events are kept for subscribers that resume; at least as long as a worker may have to "
     "catch up after an outage, because an event is recognised as a repeated one for this long.",
     "control-plane up", 600, 2592000},
    {"event_retention_max", SettingKind::integer, "2000000", "events",
     "Beyond this many, events older than ten minutes are forgotten before their time.",
     "control-plane up", 1000, 1000000000},
    {"loopback_cameras", SettingKind::text, "auto", "auto|allow|refuse",
     "Whether cameras may stand on this machine itself; auto allows it only while the control plane "
     "listens on loopback (a worker: while the control plane's address is on loopback; `weir worker detector`: while "
     "it listens there itself).",
     "control-plane up worker runner detector"},
    {"tls_certificate_file", SettingKind::text, "", "path",
     "The control plane's certificate (PEM), with those behind it that lead to an authority: with tls_key_file, it "
     "answers over TLS only. Another certificate takes effect while running.",
     "control-plane"},
    {"tls_key_file", SettingKind::text, "", "path",
     "The private key (PEM, without a password) of the certificate in tls_certificate_file.", "control-plane"},
    {"http_connections_max", SettingKind::integer, "20000", "connections",
     "How many HTTP connections are served at once; further ones are answered 503, 64 at a time, and closed.",
     "control-plane up", 1, 1000000},
    {"http_body_bytes_max", SettingKind::integer, "1048576", "bytes",
     "The largest request body that is read; a larger one is answered 413.", "control-plane up", 1024, 1073741824},
    {"http_read_timeout_s", SettingKind::number, "15", "s",
     "How long a client may take from the first byte of a request to its last.", "control-plane up", 0.1, 3600},
    {"http_idle_timeout_s", SettingKind::number, "75", "s",
     "How long a connection is kept between two requests; 5 s at most while others are refused.",
     "control-plane up", 0.1, 86400},
    {"http_write_timeout_s", SettingKind::number, "15", "s",
     "How long a client may take to read one answer, or one event of a stream.", "control-plane up", 0.1, 3600},
    {"model_files_dir", SettingKind::text, "", "path",
     "The folder for the files of detector clusters' models; empty means state_dir/models. Control planes of one store "
     "share it, and those of another store do not.",
     "control-plane up"},
    {"model_file_bytes_max", SettingKind::integer, "4294967296", "bytes",
     "The largest model file that may be uploaded; a larger one is answered 413.", "control-plane up", 1024,
     1099511627776},
    {"model_files_url", SettingKind::text, "", "URL",
     "The control plane's address as the workers of detector clusters reach it, for the links to models' files; empty "
     "means the one under which the link was asked for.",
     "control-plane up"},
    {"shutdown_grace_s", SettingKind::number, "10", "s",
     "How long running requests may take to finish once the process was asked to stop.", "control-plane up", 0, 3600},
};

// A renewal that is lost must leave time for the next one before the lease is over.
inline Status check_settings(const Settings& s) {
  double low = s.number("lease_ttl_min_s"), high = s.number("lease_ttl_max_s"), ttl = s.number("lease_ttl_s");
  if (low > high) return s.refused("lease_ttl_min_s", fmt::format("at most lease_ttl_max_s, which is {}", high));
  if (ttl < low || ttl > high)
    return s.refused("lease_ttl_s",
                     fmt::format("between lease_ttl_min_s and lease_ttl_max_s, which are {} and {}", low, high));
  if (s.number("lease_renew_interval_s") * 2 > ttl)
    return s.refused("lease_renew_interval_s", fmt::format("at most half of lease_ttl_s, which is {}", ttl));
  std::string_view certificate = "tls_certificate_file", key = "tls_key_file";
  if (s.text(certificate).empty() != s.text(key).empty()) {
    if (s.text(certificate).empty()) std::swap(certificate, key);
    return s.refused(certificate, fmt::format("given together with {}", key));
  }
  std::string url = s.text("model_files_url");
  if (!url.empty() && !url.starts_with("http://") && !url.starts_with("https://"))
    return s.refused("model_files_url", "an http:// or https:// address");
  return ok();
}

}  // namespace weir::control_plane
