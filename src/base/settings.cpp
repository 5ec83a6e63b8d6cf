#include "weir/base/settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

namespace weir {

namespace {

using Kind = SettingKind;

// A text whose unit lists words ("a|b") takes one of these words only.
constexpr SettingSpec kTable[] = {
    {"listen", Kind::text, "127.0.0.1:8080", "host:port",
     "Where the control plane answers HTTP; port 0 takes a free one, which the first line on stdout names.",
     "control-plane up"},
    {"database_url", Kind::secret, "", "URL",
     "The store: sqlite:PATH or postgres://…; empty means SQLite in state_dir/weir.db.", "control-plane store"},
    {"database_pool_size", Kind::integer, "16", "connections",
     "How many PostgreSQL connections one control plane opens, and so how many commits share one flush of the disk; "
     "SQLite always has one writer.", "control-plane", 1, 64},
    {"state_dir", Kind::text, ".weir", "path",
     "The folder that holds what a single machine keeps: the SQLite store, the secret, the address of `weir up`.",
     "up control-plane token admin worker runner store"},
    {"auth_secret_file", Kind::text, "", "path",
     "The key that signs tokens, created with mode 0600 when absent; empty means state_dir/auth.secret.",
     "control-plane up token admin runner"},
    {"control_plane_url", Kind::text, "", "URL",
     "The control plane that a client or runner asks; several addresses of it have commas between. Empty means the one "
     "that WEIR_URL names, or that `weir up` started in state_dir.", "admin runner"},
    {"control_plane_ca_file", Kind::text, "", "path",
     "Certificates (PEM) of the authorities that a control plane's https:// address may come from, besides those that "
     "the system knows.", "admin runner worker"},
    {"lease_ttl_s", Kind::number, "6", "s",
     "How long a lease lasts without a renewal, as runners ask for it: shorter takes over sooner, longer forgives "
     "slower "
     "networks.",
     "control-plane up runner", 1, 3600},
    {"lease_renew_interval_s", Kind::number, "2", "s",
     "How often a holder renews its leases; at most half of lease_ttl_s, so that one lost renewal costs nothing.",
     "control-plane up runner", 0.1, 1800},
    {"lease_ttl_min_s", Kind::number, "3", "s",
     "The shortest lease a runner may ask for; shorter ones are refused, not stretched.", "control-plane up", 1, 3600},
    {"lease_ttl_max_s", Kind::number, "60", "s",
     "The longest lease a runner may ask for; also how long nothing changes hands after commits may have been lost.",
     "control-plane up store", 1, 3600},
    {"runner_live_s", Kind::number, "10", "s", "A runner counts as live for this long after its last heartbeat.",
     "control-plane up", 1, 3600},
    {"budget_capacity", Kind::integer, "10", "tokens",
     "How many cameras of a new site may be dialled at once before its bucket is empty.", "control-plane up", 1, 10000},
    {"budget_refill_per_min", Kind::number, "60", "tokens/min",
     "How quickly a new site's bucket fills again, continuously.", "control-plane up", 0, 100000},
    {"event_retention_s", Kind::number, "3600", "s",
     "How long events are kept for subscribers that resume; at least as long as a worker may have to catch up after an "
     "outage, because an event is recognised as a repeated one for this long.",
     "control-plane up", 600, 2592000},
    {"event_retention_max", Kind::integer, "2000000", "events",
     "Beyond this many, events older than ten minutes are forgotten before their time.", "control-plane up", 1000,
     1000000000},
    {"loopback_cameras", Kind::text, "auto", "auto|allow|refuse",
     "Whether cameras may stand on this machine itself; auto allows it only while the control plane listens on "
     "loopback (a worker: while the control plane's address is on loopback).",
     "control-plane up worker runner"},
    {"http_connections_max", Kind::integer, "20000", "connections",
     "How many HTTP connections are served at once; further ones are answered 503, 64 at a time, and closed.",
     "control-plane up", 1, 1000000},
    {"http_body_bytes_max", Kind::integer, "1048576", "bytes",
     "The largest request body that is read; a larger one is answered 413.", "control-plane up", 1024, 1073741824},
    {"http_read_timeout_s", Kind::number, "15", "s",
     "How long a client may take from the first byte of a request to its last.", "control-plane up", 0.1, 3600},
    {"http_idle_timeout_s", Kind::number, "75", "s",
     "How long a connection is kept between two requests; 5 s at most while others are refused.", "control-plane up", 0.1,
     86400},
    {"http_write_timeout_s", Kind::number, "15", "s",
     "How long a client may take to read one answer, or one event of a stream.", "control-plane up", 0.1, 3600},
    {"shutdown_grace_s", Kind::number, "10", "s",
     "How long running requests may take to finish once the process was asked to stop.", "control-plane up", 0, 3600},
    {"prom_worker_port", Kind::integer, "9108", "port",
     "Where a worker serves metrics and its control endpoints on loopback; the next free port above it where it is "
     "taken, any free one for 0.",
     "worker runner up", 0, 65535},
    {"readiness_quorum_pct", Kind::integer, "80", "%",
     "A worker is ready when at least this share of its cameras delivers pictures; one that shall replace another, when "
     "it delivers this share of what that one does.",
     "worker runner up", 1, 100},
    {"status_summary_interval_s", Kind::number, "5", "s", "How often a worker sums up each camera's status.", "worker runner up",
     0.1, 3600},
    {"grace_timeout_s", Kind::number, "15", "s",
     "How long a worker may take to drain: to stop its cameras and have its last events confirmed.", "worker runner up", 1, 3600},
    {"outage_grace_s", Kind::number, "300", "s",
     "How long a worker goes on decoding and keeps what it sees on disk while nobody says whose camera it is.",
     "worker runner up", 1, 86400},
    {"adaptive_keyframe_max_s", Kind::number, "1", "s",
     "Adaptive decoding applies to cameras that send a keyframe at least this often.", "worker runner up", 0.1, 60},
    {"connect_timeout_s", Kind::number, "5", "s", "How long a camera, or a forwarder's hub, may take to answer a dial.",
     "worker runner up egress", 0.5, 120},
    {"stall_timeout_s", Kind::number, "4", "s",
     "A camera that sends no picture for this long, or a hub that sends a forwarder nothing, counts as stalled and is dialled "
     "again.", "worker runner up egress", 0.5, 3600},
    {"dial_concurrency", Kind::integer, "8", "dials",
     "How many cameras of one site are dialled at the same time, by all workers of a runner together.", "worker runner up", 1, 1000},
    {"inference_threads", Kind::integer, "0", "threads",
     "How many pictures a worker looks at in parallel; 0 means one a core.", "worker runner up", 0, 256},
    {"models_dir", Kind::text, "", "path",
     "Where models lie: efficientdet-lite0.tflite, NAME.tflite, NAME.onnx, with NAME.txt for labels; empty means the "
     "folder share/weir/models beside the programs.",
     "worker labels up runner size"},
    {"library_dir", Kind::text, "", "path",
     "Where libtensorflowlite_c.so and libonnxruntime.so.1 lie; empty means lib/weir beside the programs, then the "
     "system's.",
     "worker up runner size"},
    {"spool_dir", Kind::text, "", "path",
     "Where a worker keeps events that cannot be published now; empty means state_dir/spool. One runner a folder.",
     "worker runner up"},
    {"spool_bytes_max", Kind::integer, "268435456", "bytes",
     "How much one worker may keep in its spool, at most 32 MiB of it a camera; beyond it the oldest events of the camera "
     "with the most are dropped and counted.", "worker runner up", 1048576,
     1099511627776},
    {"runner_id", Kind::text, "", "id", "This runner's name; empty means the host's name.", "runner"},
    {"api_key", Kind::secret, "", "key",
     "What a runner or a command buys its tokens with (`weir key add`); empty means `--token-file` where given, else the "
     "key in auth_secret_file, which a runner on the control plane's own machine can read.", "runner admin"},
    {"capacity_streams", Kind::integer, "0", "cameras",
     "How many cameras a runner takes; 0 means as many as its machine can look at, which its first start measures and "
     "keeps in state_dir/machine.json (docs/sizing.md). What `weir node capacity` says beats both.",
     "runner up", 0, 100000},
    {"target_streams_per_shard", Kind::integer, "12", "cameras", "How many cameras share one worker.", "runner up", 1,
     1000},
    {"max_workers", Kind::integer, "0", "workers",
     "The most workers of a runner, those of cameras that need one of their own not counted; 0 means as many as its "
     "cameras need.",
     "runner up", 0, 10000},
    {"max_cameras_per_worker", Kind::integer, "16", "cameras", "An upper bound on target_streams_per_shard.",
     "runner up", 1, 1000},
    {"prom_manager_port", Kind::integer, "9107", "port",
     "Where a runner serves metrics and health; the next free one of the six ports below it where it is taken (workers "
     "look above), any free one for 0.",
     "runner up", 0, 65535},
    {"prom_manager_host", Kind::text, "127.0.0.1", "address", "The address that goes with prom_manager_port.",
     "runner up"},
    {"heartbeat_interval_s", Kind::number, "1", "s", "How often a runner says that it lives.", "runner", 0.1, 60},
    {"lease_retry_interval_s", Kind::number, "10", "s",
     "How often a runner asks again for a camera that somebody else has, beside what the lease feed tells it.",
     "runner up", 0.5, 3600},
    {"rollout", Kind::text, "live", "live|bluegreen",
     "How cameras join a running worker: added to it, or with a new worker that replaces it.", "runner up"},
    {"drain_batch", Kind::integer, "4", "cameras", "How many cameras a soft drain hands over at a time (`weir up`: all).",
     "runner up", 1, 10000},
    {"drain_interval_s", Kind::number, "1", "s", "The shortest time between two batches of a soft drain.", "runner up",
     0, 3600},
    {"drain_timeout_s", Kind::number, "60", "s",
     "How long a runner that was asked to stop may take to hand its cameras over (that of `weir up`: 5); what is left then "
     "is let go at once.",
     "runner up", 1, 86400},
    {"cpu_high_pct", Kind::number, "100", "%",
     "Above this load of the machine, for ten heartbeats, a runner takes no further cameras; 100 means never, because a busy "
     "runner that takes over is better than none.", "runner up", 1, 100},
    {"mem_high_pct", Kind::number, "92", "%",
     "Above this use of the machine's memory, for ten heartbeats, a runner takes no further cameras.", "runner up", 1, 100},
    {"runner_tenant", Kind::text, "", "id", "A runner takes cameras of this tenant only; empty means all.", "runner"},
    {"runner_site", Kind::text, "", "id", "A runner takes cameras of this site only; empty means all.", "runner"},
    {"deployment_group", Kind::text, "", "word", "Shown beside the runner, for operators.", "runner"},
    {"deployment_version", Kind::text, "", "word", "Shown beside the runner; empty means Weir's version.", "runner"},
    {"token_ttl_s", Kind::number, "900", "s", "How long a token lives where whoever asks for it does not say.",
     "token control-plane up", 1, 31536000},
    {"log_level", Kind::text, "info", "debug|info|warn|error|off",
     "What is logged: this level and the ones after it. A change takes effect while running; a worker, and "
     "the runner of `weir up`, keep the level that they were started with.", "control-plane up worker runner egress"},
    {"log_dir", Kind::text, "", "path",
     "A folder where the JSON log lines go as well, in weir.log; empty means stderr only (`weir egress`: the folder logs, in "
     "egress-<stream_id>.log).", "control-plane up worker runner egress"},
    {"log_bytes_max", Kind::integer, "10485760", "bytes",
     "A forwarder's log file that has reached this becomes FILE.1, and a new one begins; 0 means no bound.", "egress", 0,
     1099511627776},
    {"stream_id", Kind::text, "", "id",
     "The published stream that a forwarder reads, as live/<stream_id>/out: letters, digits, '_' and '-'.", "egress"},
    {"run_id", Kind::text, "", "id", "The run of the stream that a forwarder belongs to: the same for all its instances.",
     "egress"},
    {"instance_id", Kind::text, "", "id", "This forwarder's own name within its run: another one for every start.",
     "egress"},
    {"egress_enabled", Kind::flag, "false", "", "Whether a forwarder forwards; if not, it says so and ends with 0.",
     "egress"},
    {"mediamtx_rtsp_base", Kind::secret, "rtsp://mediamtx:8554", "URL",
     "The hub that streams are read from, rtsp:// or rtsps://; user and password may stand in it.", "egress"},
    {"dest_rtmp_url", Kind::secret, "", "URL",
     "The destination of a forward, rtmp://host/app/key or rtmps://…; give it in a settings file or by a descriptor "
     "(--config /dev/fd/3), because flags and environment can be read by others.", "egress"},
    {"dest_tls_verify", Kind::flag, "true", "", "Whether the certificate of an rtmps:// destination must be valid.",
     "egress"},
    {"dest_ca_file", Kind::text, "", "path",
     "Certificates (PEM) of the authorities that an rtmps:// destination may come from; empty means those that the "
     "system knows.", "egress"},
    {"dest_connect_timeout_s", Kind::number, "10", "s",
     "How long a destination may take from the dial to its consent to publish.", "egress", 0.5, 120},
    {"dest_stall_timeout_s", Kind::number, "8", "s",
     "A destination that acknowledges nothing of what it was sent for this long is dead, whatever its connection says.",
     "egress", 1, 120},
    {"input_not_ready_grace_seconds", Kind::integer, "30", "s",
     "How long a forwarder waits for a stream that is not there, at its start and whenever the stream was lost.",
     "egress", 0, 86400},
    {"retry_base_delay_ms", Kind::integer, "500", "ms", "A forwarder's delay before the first retry; each next one is "
     "twice as long.", "egress", 1, 3600000},
    {"retry_max_delay_ms", Kind::integer, "10000", "ms", "The longest such delay.", "egress", 1, 3600000},
    {"retry_jitter_ms", Kind::integer, "250", "ms", "At most this much is added to each delay at random.", "egress", 0,
     3600000},
    {"retry_max_attempts", Kind::integer, "0", "retries",
     "How many times in a row a forwarder tries a destination again before it ends with 40; 0 means for ever.", "egress",
     0, 1000000},
    {"prom_egress_port", Kind::integer, "9208", "port",
     "Where a forwarder serves metrics on loopback; the next free port above it where it is taken, any free one for 0.",
     "egress", 0, 65535},
    {"lease_version", Kind::integer, "0", "", "The version under which a supervisor started a forwarder.", "egress", 0,
     9e18},
    {"lease_valid_until_us", Kind::integer, "0", "µs",
     "The point on this machine's CLOCK_BOOTTIME until which a forwarder may send; 0 means for ever.", "egress", 0, 9e18},
    {"lease_socket", Kind::text, "", "path",
     "A Unix socket where a supervisor extends that time; empty means none.", "egress"},
};

std::string_view kind_words(Kind kind) {
  switch (kind) {
    case Kind::text: return "text";
    case Kind::integer: return "whole number";
    case Kind::number: return "number";
    case Kind::flag: return "true or false";
    case Kind::secret: return "secret";
  }
  return "";
}

bool bounded(const SettingSpec& spec) { return spec.low != 0 || spec.high != 0; }

std::vector<std::string_view> choices(const SettingSpec& spec) {
  std::vector<std::string_view> words;
  if (spec.kind != Kind::text || spec.unit.find('|') == std::string_view::npos) return words;
  for (std::string_view rest = spec.unit;;) {
    size_t end = rest.find('|');
    words.push_back(rest.substr(0, end));
    if (end == std::string_view::npos) return words;
    rest = rest.substr(end + 1);
  }
}

// "a whole number between 1 and 64", "one of: auto, allow, refuse"
std::string allowed(const SettingSpec& spec) {
  if (auto words = choices(spec); !words.empty()) return fmt::format("one of: {}", fmt::join(words, ", "));
  std::string range = bounded(spec) ? fmt::format(" between {} and {}", spec.low, spec.high) : std::string();
  switch (spec.kind) {
    case Kind::integer: return "a whole number" + range;
    case Kind::number: return "a number" + range;
    case Kind::flag: return "true or false";
    case Kind::text:
    case Kind::secret: break;
  }
  return "a single line of text";
}

template <class T>
std::optional<T> parse_whole_text(std::string_view text) {
  T number{};
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<bool> parse_flag(std::string_view text) {
  for (auto word : {"true", "yes", "on", "1"})
    if (text == word) return true;
  for (auto word : {"false", "no", "off", "0"})
    if (text == word) return false;
  return std::nullopt;
}

bool acceptable(const SettingSpec& spec, std::string_view text) {
  auto within = [&](double number) {
    return std::isfinite(number) && (!bounded(spec) || (number >= spec.low && number <= spec.high));
  };
  switch (spec.kind) {
    case Kind::text:
    case Kind::secret: {
      if (std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7F; })) return false;
      auto words = choices(spec);
      return words.empty() || std::ranges::find(words, text) != words.end();
    }
    case Kind::integer: {
      auto number = parse_whole_text<std::int64_t>(text);
      return number && within(static_cast<double>(*number));
    }
    case Kind::number: {
      auto number = parse_whole_text<double>(text);
      return number && within(*number);
    }
    case Kind::flag: return parse_flag(text).has_value();
  }
  return false;
}

// A value as an error may show it: bounded, and without anything that a terminal would obey.
std::string shown(std::string_view text) {
  std::string out;
  for (unsigned char c : text.substr(0, 60)) out += c < 0x20 || c >= 0x7F ? '?' : static_cast<char>(c);
  return text.size() > 60 ? out + "…" : out;
}

Error bad_value(const SettingSpec& spec, std::string_view text, std::string_view origin) {
  std::string value = spec.kind == Kind::secret ? std::string() : fmt::format(", not \"{}\"", shown(text));
  return Error{Errc::invalid,
               "bad_setting",
               fmt::format("{} must be {}{} ({})", spec.name, allowed(spec), value, origin),
               {{"field", spec.name}}};
}

// How many letters must be inserted, removed, changed or swapped with their neighbour.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

Error unknown_key(std::string_view key, std::string_view origin) {
  std::string text = shown(key);
  const auto& nearest = *std::ranges::min_element(
      kTable, {}, [&](const SettingSpec& spec) { return distance(spec.name, std::string_view(text)); });
  return Error{Errc::invalid,
               "unknown_setting",
               fmt::format("there is no setting \"{}\" ({}); the nearest one is {}", text, origin, nearest.name),
               {{"field", text}}};
}

struct FileEntry {
  std::string key;
  std::string value;
  int line;
};

Error bad_file(std::string message) { return Error{Errc::invalid, "bad_settings_file", std::move(message)}; }

// The flat map that a settings file is. yaml-cpp throws; nothing of that leaves here, and none of its messages
// repeats a value.
Result<std::vector<FileEntry>> read_yaml(const std::string& text, std::string_view name) {
  auto at = [&](const YAML::Mark& mark) { return fmt::format("{}:{}", name, mark.line + 1); };
  try {
    std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1) return bad_file(fmt::format("{}: only one YAML document is allowed", name));
    std::vector<FileEntry> entries;
    if (documents.empty() || documents[0].IsNull()) return entries;
    if (!documents[0].IsMap()) return bad_file(fmt::format("{}: must be a list of \"name: value\" lines", name));
    std::set<std::string> seen;
    for (const auto& entry : documents[0]) {
      if (!entry.first.IsScalar())
        return bad_file(fmt::format("a setting's name must be text ({})", at(entry.first.Mark())));
      std::string key = entry.first.Scalar();
      std::string where = at(entry.first.Mark());
      if (find_setting(key) == nullptr) return unknown_key(key, where);
      if (!seen.insert(key).second) return bad_file(fmt::format("{} is given twice ({})", key, where));
      if (entry.second.IsNull())
        return bad_file(fmt::format("{} has no value ({}); an empty text is written as \"\"", key, where));
      if (!entry.second.IsScalar())
        return bad_file(fmt::format("{} must be a single value, not a list or a map ({})", key, where));
      entries.push_back({std::move(key), entry.second.Scalar(), entry.first.Mark().line + 1});
    }
    return entries;
  } catch (const YAML::Exception& failed) {
    return bad_file(fmt::format("{} is not valid YAML: {}", at(failed.mark), failed.msg));
  }
}

// What no single row can say.
Status check_together(const Settings& s) {
  auto refuse = [&](std::string_view name, std::string_view rule) -> Status {
    return Error{
        Errc::invalid, "bad_setting", fmt::format("{} must be {} ({})", name, rule, s.origin(name)), {{"field", name}}};
  };
  double low = s.number("lease_ttl_min_s"), high = s.number("lease_ttl_max_s"), ttl = s.number("lease_ttl_s");
  if (low > high) return refuse("lease_ttl_min_s", fmt::format("at most lease_ttl_max_s, which is {}", high));
  if (ttl < low || ttl > high)
    return refuse("lease_ttl_s",
                  fmt::format("between lease_ttl_min_s and lease_ttl_max_s, which are {} and {}", low, high));
  if (s.integer("retry_base_delay_ms") > s.integer("retry_max_delay_ms"))
    return refuse("retry_base_delay_ms",
                  fmt::format("at most retry_max_delay_ms, which is {}", s.integer("retry_max_delay_ms")));
  if (s.number("lease_renew_interval_s") * 2 > ttl)
    return refuse("lease_renew_interval_s", fmt::format("at most half of lease_ttl_s, which is {}", ttl));
  return ok();
}

}  // namespace

std::span<const SettingSpec> all_settings() { return kTable; }

const SettingSpec* find_setting(std::string_view name) {
  for (const auto& spec : kTable)
    if (spec.name == name) return &spec;
  return nullptr;
}

std::string setting_flag(std::string_view name) {
  std::string flag = "--" + std::string(name);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

std::string setting_environment(std::string_view name) {
  std::string upper(name);
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return upper;
}

Settings::Settings() {
  for (const auto& spec : kTable) values_[std::string(spec.name)] = {std::string(spec.fallback), "default"};
}

Result<Settings> Settings::load(const Sources& sources) {
  Settings settings;
  std::string_view file = sources.yaml_name.empty() ? std::string_view("settings file") : sources.yaml_name;
  TRY(entries, read_yaml(sources.yaml, file));
  for (const auto& [key, value, line] : entries) {
    TRY(stored, settings.put(*find_setting(key), value, fmt::format("file {}:{}", file, line)));
  }
  for (const auto& spec : kTable) {
    std::string variable = setting_environment(spec.name);
    const char* value = sources.environment ? sources.environment(variable.c_str()) : nullptr;
    // Compose files and units set empty variables where they mean none.
    if (value == nullptr || *value == '\0') continue;
    TRY(stored, settings.put(spec, value, "environment " + variable));
  }
  for (const auto& [name, value] : sources.flags) {
    const SettingSpec* spec = find_setting(name);
    if (spec == nullptr) return unknown_key(name, "flag");
    TRY(stored, settings.put(*spec, value, "flag " + setting_flag(name)));
  }
  TRY(together, check_together(settings));
  return settings;
}

Status Settings::put(const SettingSpec& spec, std::string text, std::string origin) {
  if (!acceptable(spec, text)) return bad_value(spec, text, origin);
  values_[std::string(spec.name)] = {std::move(text), std::move(origin)};
  return ok();
}

const std::string& Settings::raw(std::string_view name, SettingKind kind) const {
  const SettingSpec* spec = find_setting(name);
  WEIR_ASSERT(spec != nullptr);
  WEIR_ASSERT(spec->kind == kind || (kind == Kind::number && spec->kind == Kind::integer));
  return values_.find(name)->second.text;
}

std::string Settings::text(std::string_view name) const { return raw(name, Kind::text); }
Secret Settings::secret(std::string_view name) const { return Secret(raw(name, Kind::secret)); }
std::int64_t Settings::integer(std::string_view name) const {
  return *parse_whole_text<std::int64_t>(raw(name, Kind::integer));
}
double Settings::number(std::string_view name) const { return *parse_whole_text<double>(raw(name, Kind::number)); }
bool Settings::flag(std::string_view name) const { return *parse_flag(raw(name, Kind::flag)); }
Duration Settings::duration(std::string_view name) const { return from_seconds(number(name)); }

std::string Settings::origin(std::string_view name) const {
  auto found = values_.find(name);
  WEIR_ASSERT(found != values_.end());
  return found->second.origin;
}

namespace {

// Bounds and choices for a person, "" where everything goes.
std::string limits(const SettingSpec& spec) {
  if (auto words = choices(spec); !words.empty()) return fmt::format("{}", fmt::join(words, ", "));
  return bounded(spec) ? fmt::format("{} to {}", spec.low, spec.high) : std::string();
}

std::string unit_of(const SettingSpec& spec) { return choices(spec).empty() ? std::string(spec.unit) : std::string(); }

std::string yaml_value(const SettingSpec& spec) {
  bool quoted = spec.kind == Kind::text || spec.kind == Kind::secret;
  return quoted ? fmt::format("\"{}\"", spec.fallback) : std::string(spec.fallback);
}

// Breaks a sentence into comment lines of at most 110 columns.
std::string comment(std::string_view sentence) {
  std::string out, line = "#";
  while (!sentence.empty()) {
    size_t end = sentence.find(' ');
    std::string_view word = sentence.substr(0, end);
    if (line.size() + 1 + word.size() > 110) {
      out += line + "\n";
      line = "#";
    }
    line += fmt::format(" {}", word);
    sentence = end == std::string_view::npos ? std::string_view() : sentence.substr(end + 1);
  }
  return out + line + "\n";
}

}  // namespace

std::string settings_reference() {
  std::string out =
      "# Settings\n\n"
      "Every setting can be given in three ways; a flag beats the environment, which beats the file named by "
      "`--config FILE` (`--settings FILE` for `weir worker shard`).\n"
      "An environment variable that is set but empty counts as not set. An unknown key or a bad value is an error that "
      "says where it stood.\n"
      "This page is made from the table in the code: `weir settings --reference`. `weir settings` shows the values in "
      "effect and where each came from; `weir settings --sample` prints a file with every default.\n\n"
      "| setting (YAML) | flag | environment | kind | default | unit | allowed | used by | what it does |\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  for (const auto& spec : kTable)
    out += fmt::format("| `{}` | `{}` | `{}` | {} | {} | {} | {} | {} | {} |\n", spec.name, setting_flag(spec.name),
                       setting_environment(spec.name), kind_words(spec.kind),
                       spec.fallback.empty() ? "empty" : fmt::format("`{}`", spec.fallback), unit_of(spec),
                       limits(spec), spec.used_by, spec.sentence);
  out +=
      "\n`--db` is short for `--database-url`. \"admin\" stands for the commands that ask a control plane: `tenant`, "
      "`site`, `camera`, `zone`, `node`, `lease`, `events`, `key`, `status`; they also take `WEIR_URL` and "
      "`WEIR_TOKEN`, a runner `WEIR_URL`.\n"
      "A secret is never shown in a log, an error or by `weir settings`.\n";
  return out;
}

std::string settings_sample() {
  std::string out =
      "# Every setting of Weir at its default. Loading this file unchanged changes nothing, but for the settings of which\n"
      "# `weir up` has defaults of its own, as they say.\n"
      "# Use it with: weir control-plane --config FILE\n";
  for (const auto& spec : kTable) {
    std::string note = unit_of(spec);
    if (std::string bounds = limits(spec); !bounds.empty()) note += (note.empty() ? "" : ", ") + bounds;
    out += "\n" + comment(spec.sentence);
    if (!note.empty()) out += comment(fmt::format("({})", note));
    out += fmt::format("{}: {}\n", spec.name, yaml_value(spec));
  }
  return out;
}

}  // namespace weir
