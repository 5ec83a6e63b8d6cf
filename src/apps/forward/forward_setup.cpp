#include "forward_setup.hpp"

#include "common/logging.hpp"

#include "weir/base/log.hpp"
#include "weir/forward/destination.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace weir::apps {

namespace {

// Nobody but root may look into this process, and nothing of it is left on a disk.
void hide_from_others() {
  rlimit none{};
  ::setrlimit(RLIMIT_CORE, &none);
  ::prctl(PR_SET_DUMPABLE, 0);
}

// A key that came by the environment is wiped there; a process that has read the environment before has it already.
void wipe_environment(const std::string& name) {
  if (char* value = std::getenv(name.c_str())) ::explicit_bzero(value, std::strlen(value));
  ::unsetenv(name.c_str());
}

// A supervisor hands the settings over by a descriptor; what stays open could be read again.
void close_inherited(const std::optional<std::string>& path) {
  constexpr std::string_view kPrefix = "/dev/fd/";
  if (!path || !path->starts_with(kPrefix)) return;
  int fd = -1;
  std::from_chars(path->data() + kPrefix.size(), path->data() + path->size(), fd);
  if (fd > 2) ::close(fd);
}

Status open_log(const Settings& s, const ForwardNames& names) {
  LogFile file{.folder = forward_log_folder(s),
               .name = fmt::format("{}-{}.log", names.file, s.text("stream_id")),
               .bytes_max = s.integer("log_bytes_max")};
  if (!forward::valid_stream_id(s.text("stream_id"))) file.folder.clear();
  Status opened = configure_logging(s, file);
  if (opened) return opened;
  // A disk that takes no log must not keep the stream from being forwarded.
  Status plain = configure_logging(s, LogFile{});
  log::warn("log.no_file", opened.error().message);
  return plain;
}

}  // namespace

void hold_signals(int how) {
  sigset_t both;
  ::sigemptyset(&both);
  for (int signal : {SIGTERM, SIGINT}) ::sigaddset(&both, signal);
  ::pthread_sigmask(how, &both, nullptr);
}

std::string forward_log_folder(const Settings& s) {
  return s.origin("log_dir") == "default" ? "logs" : s.text("log_dir");
}

Result<Settings> set_up_forward(const Arguments& arguments, const ForwardNames& names) {
  hold_signals(SIG_BLOCK);
  hide_from_others();
  TRY(settings, arguments.settings());
  close_inherited(arguments.config_file());
  log::set_common("service", std::string(names.service));
  log::set_common("streamId", settings.text("stream_id"));
  log::set_common("runId", settings.text("run_id"));
  log::set_common("instanceId", settings.text("instance_id"));
  TRY(logging, open_log(settings, names));
  return settings;
}

Result<egress::Identity> read_identity(const Settings& s) {
  auto needed = [&](std::string_view name) -> Result<std::string> {
    std::string value = s.text(name);
    if (value.empty() || value.size() > 255)
      return forward::failure(forward::Kind::config_invalid,
                              value.empty() ? fmt::format("{} is not set", setting_environment(name))
                                            : fmt::format("{} is longer than 255 characters", setting_environment(name)));
    return value;
  };
  TRY(run, needed("run_id"));
  TRY(instance, needed("instance_id"));
  return egress::Identity{.stream = s.text("stream_id"), .run = run, .instance = instance};
}

forward::Policy read_policy(const Settings& s) {
  auto ms = [&](std::string_view name) { return std::chrono::milliseconds(s.integer(name)); };
  return {.grace = std::chrono::seconds(s.integer("input_not_ready_grace_seconds")),
          .retry = {.first = ms("retry_base_delay_ms"),
                    .cap = ms("retry_max_delay_ms"),
                    .jitter = 0,
                    .spread = ms("retry_jitter_ms")},
          .retries_max = static_cast<int>(s.integer("retry_max_attempts"))};
}

void warn_of_exposed(const Settings& s, const egress::Voice& voice, std::span<const std::string_view> always) {
  auto check = [&](std::string_view name, bool secret) {
    std::string origin = s.origin(name);
    if (secret && (origin.starts_with("environment") || origin.starts_with("flag")))
      log::warn(fmt::format("{}.exposed", voice.events),
                fmt::format("{} holds a secret and came by the {}, where others can read it: use a settings file or a "
                            "descriptor (--config /dev/fd/3)",
                            setting_environment(name), origin.substr(0, origin.find(' '))));
    wipe_environment(setting_environment(name));
  };
  for (std::string_view name : always) check(name, true);
  check("mediamtx_rtsp_base", s.secret("mediamtx_rtsp_base").reveal().find('@') != std::string::npos);
}

int refuse_forward(const egress::Voice& voice, const Error& error) {
  forward::Failure why = forward::failure_of(error);
  if (why.kind == forward::Kind::internal && error.code != Errc::internal) why.kind = forward::Kind::config_invalid;
  int code = row_of(why.kind).exit;
  log::error(fmt::format("{}.exit", voice.events), std::string(row_of(why.kind).advice))
      .with("exitCode", code)
      .with("reason", to_string(why.kind))
      .with("error.kind", to_string(why.kind))
      .with("error.message", error.message);
  return code;
}

}  // namespace weir::apps
