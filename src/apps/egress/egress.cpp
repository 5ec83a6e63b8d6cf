#include "egress.hpp"

#include "../files.hpp"
#include "../logging.hpp"
#include "../print.hpp"
#include "../signals.hpp"
#include "run_record.hpp"

#include "weir/base/log.hpp"
#include "weir/egress/forwarder.hpp"
#include "weir/egress/lease_socket.hpp"
#include "weir/ffmpeg/copy.hpp"
#include "weir/net/server.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace weir::apps {

namespace asio = boost::asio;

namespace {

constexpr Duration kStopMax = 4s;  // of the five that a supervisor allows
constexpr Duration kServerGrace = 200ms;
constexpr std::pair<std::string_view, std::string_view> kDefaults[] = {{"log_dir", "logs"}};

struct Job {
  forward::Destination to;
  Secret input;
  egress::Identity identity;
};

Result<Job> read_job(const Settings& s) {
  auto needed = [&](std::string_view name) -> Result<std::string> {
    std::string value = s.text(name);
    if (value.empty() || value.size() > 255)
      return forward::failure(forward::Kind::config_invalid,
                              value.empty() ? fmt::format("{} is not set", setting_environment(name))
                                            : fmt::format("{} is longer than 255 characters", setting_environment(name)));
    return value;
  };
  Job job;
  TRY(input, forward::input_url(s.secret("mediamtx_rtsp_base"), s.text("stream_id")));
  TRY(run, needed("run_id"));
  TRY(instance, needed("instance_id"));
  TRY(to, forward::read_destination(s.secret("dest_rtmp_url")));
  job.to = to;
  job.input = input;
  job.identity = {.stream = s.text("stream_id"), .run = run, .instance = instance};
  return job;
}

forward::Policy policy_of(const Settings& s) {
  auto ms = [&](std::string_view name) { return std::chrono::milliseconds(s.integer(name)); };
  return {.grace = std::chrono::seconds(s.integer("input_not_ready_grace_seconds")),
          .retry = {.first = ms("retry_base_delay_ms"),
                    .cap = ms("retry_max_delay_ms"),
                    .jitter = 0,
                    .spread = ms("retry_jitter_ms")},
          .retries_max = static_cast<int>(s.integer("retry_max_attempts"))};
}

// Nobody but root may look into this process, and nothing of it is left on a disk.
void hide_from_others() {
  rlimit none{};
  ::setrlimit(RLIMIT_CORE, &none);
  ::prctl(PR_SET_DUMPABLE, 0);
}

// A key that came by the environment goes from there, too late for whoever looked before.
void wipe_environment(const std::string& name) {
  if (char* value = std::getenv(name.c_str())) ::explicit_bzero(value, std::strlen(value));
  ::unsetenv(name.c_str());
}

void warn_of_exposed(const Settings& s) {
  for (std::string_view name : {"dest_rtmp_url", "mediamtx_rtsp_base"}) {
    std::string origin = s.origin(name);
    bool secret = name == "dest_rtmp_url" || s.secret(name).reveal().find('@') != std::string::npos;
    if (secret && (origin.starts_with("environment") || origin.starts_with("flag")))
      log::warn("egress.exposed", fmt::format("{} holds a secret and came by the {}, where others can read it: use a "
                                              "settings file or a descriptor (--config /dev/fd/3)",
                                              setting_environment(name), origin.substr(0, origin.find(' '))));
    wipe_environment(setting_environment(name));
  }
}

// A supervisor hands the settings over by a descriptor; what stays open could be read again.
void close_inherited(const std::optional<std::string>& path) {
  constexpr std::string_view kPrefix = "/dev/fd/";
  if (!path || !path->starts_with(kPrefix)) return;
  int fd = -1;
  std::from_chars(path->data() + kPrefix.size(), path->data() + path->size(), fd);
  if (fd > 2) ::close(fd);
}

// A stop that comes while the process is still being set up is heard afterwards.
void hold_signals(int how) {
  sigset_t both;
  ::sigemptyset(&both);
  for (int signal : {SIGTERM, SIGINT}) ::sigaddset(&both, signal);
  ::pthread_sigmask(how, &both, nullptr);
}

class EgressProcess {
 public:
  EgressProcess(const Settings& settings, Job job);
  Status start();
  [[noreturn]] void run();

 private:
  egress::Ends ends();
  void hear(int signal);
  void watch_deadline();
  [[noreturn]] void finish(const forward::End& end);

  const Settings& settings_;
  const Job job_;
  asio::io_context io_{1};
  RealClock clock_;
  Signals signals_{io_};
  net::Metrics metrics_;
  egress::Report report_;
  egress::SendRight right_;
  egress::Forwarder forwarder_;
  egress::LeaseSocket socket_;
  asio::steady_timer deadline_{io_}, stopping_{io_};
  bool stopped_ = false;
  net::Router router_;
  net::HttpServer server_{io_, clock_, router_, net::ServerLimits{.connections_max = 64}};
};

std::optional<Instant> valid_until(const Settings& s) {
  std::int64_t until = s.integer("lease_valid_until_us");
  return until == 0 ? std::nullopt : std::optional(Instant(Duration(until)));
}

EgressProcess::EgressProcess(const Settings& settings, Job job)
    : settings_(settings),
      job_(std::move(job)),
      report_(metrics_, job_.identity),
      right_(settings.integer("lease_version"), valid_until(settings)),
      forwarder_(ends(), policy_of(settings), right_, report_),
      socket_(io_, right_, [this] {
        watch_deadline();
        forwarder_.look_at_right();
      }) {}

egress::Ends EgressProcess::ends() {
  ffmpeg::CopyInputConfig input{.url = job_.input,
                                .connect_timeout = settings_.duration("connect_timeout_s"),
                                .stall_timeout = settings_.duration("stall_timeout_s")};
  ffmpeg::CopyOutputConfig output{.to = job_.to,
                                  .connect_timeout = settings_.duration("dest_connect_timeout_s"),
                                  .stall_timeout = settings_.duration("dest_stall_timeout_s"),
                                  .tls_verify = settings_.flag("dest_tls_verify"),
                                  .ca_file = settings_.text("dest_ca_file"),
                                  .may_send = [this](Instant now) { return right_.valid(now); }};
  return {.input = [input] { return ffmpeg::make_copy_input(input); },
          .output = [output] { return ffmpeg::make_copy_output(output); }};
}

Status EgressProcess::start() {
  std::signal(SIGPIPE, SIG_IGN);
  signals_.add({SIGTERM, SIGINT});
  signals_.hear([this](int signal) { hear(signal); });
  hold_signals(SIG_UNBLOCK);
  if (std::string path = settings_.text("lease_socket"); !path.empty()) {
    TRY(listening, socket_.listen(path));
  }
  router_.add(net::Method::get, "/healthz", [](net::Request&) -> asio::awaitable<net::Response> {
    co_return net::Response::json({{"status", "ok"}});
  });
  router_.add(net::Method::get, "/metrics", [this](net::Request&) -> asio::awaitable<net::Response> {
    co_return net::Response::text(metrics_.text(), 200, "text/plain; version=0.0.4; charset=utf-8");
  });
  Status served = server_.listen_from("127.0.0.1", static_cast<int>(settings_.integer("prom_egress_port")));
  if (!served) served = server_.listen_from("127.0.0.1", 0);
  if (!served) log::warn("egress.no_metrics", served.error().message);  // a stream is worth more than its numbers
  print_line(json::to_text(json::object{{"control", "http://" + server_.address()}, {"pid", ::getpid()}}));
  log::info("egress.starting", "a forwarder starts")
      .with("metrics", served ? "http://" + server_.address() + "/metrics" : "")
      .with("graceSeconds", settings_.integer("input_not_ready_grace_seconds"))
      .with("retryMaxAttempts", settings_.integer("retry_max_attempts"))
      .with("version", right_.version());
  return ok();
}

void EgressProcess::hear(int) {
  if (std::exchange(stopped_, true)) return;
  forwarder_.stop();
  // A name lookup hears nothing; the process ends all the same.
  stopping_.expires_after(kStopMax);
  stopping_.async_wait([this](const boost::system::error_code& cancelled) {
    if (!cancelled) finish({forward::kExitClean, "stopped, though a call hung"});
  });
}

// The timer knows nothing of a machine that sleeps: it looks once a second, too.
void EgressProcess::watch_deadline() {
  auto until = right_.valid_until();
  if (!until) return;
  Duration left = *until - boot_now();
  if (left <= 0s) return forwarder_.look_at_right();
  deadline_.expires_after(std::min(left, Duration(1s)));
  deadline_.async_wait([this](const boost::system::error_code& cancelled) {
    if (!cancelled) watch_deadline();
  });
}

void EgressProcess::finish(const forward::End& end) {
  report_.exit(end, report_.last_failure());
  std::fflush(stdout);
  forwarder_.abandon();
  if (std::string path = settings_.text("lease_socket"); !path.empty()) ::unlink(path.c_str());
  // A thread may hang in a name lookup, and what it uses must not be destroyed under it.
  ::_exit(end.code);
}

void EgressProcess::run() {
  watch_deadline();
  std::thread([this] {
    forward::End end{forward::kExitInternal, "internal"};
    try {
      end = forwarder_.run();
    } catch (const std::exception& failed) {
      report_.failed({forward::Kind::internal, failed.what()});
    }
    asio::post(io_, [this, end] { finish(end); });
  }).detach();
  auto alive = asio::make_work_guard(io_);
  io_.run();
  ::_exit(forward::kExitInternal);  // the loop does not end by itself
}

// Fields that stand in every line.
void name_lines(const Settings& s) {
  log::set_common("service", "egress-forwarder");
  log::set_common("streamId", s.text("stream_id"));
  log::set_common("runId", s.text("run_id"));
  log::set_common("instanceId", s.text("instance_id"));
}

std::string log_folder(const Settings& s) { return s.origin("log_dir") == "default" ? "logs" : s.text("log_dir"); }

Status open_log(const Settings& s) {
  LogFile file{.folder = log_folder(s),
               .name = fmt::format("egress-{}.log", s.text("stream_id")),
               .bytes_max = s.integer("log_bytes_max")};
  if (!forward::valid_stream_id(s.text("stream_id"))) file.folder.clear();
  Status opened = configure_logging(s, file);
  if (opened) return opened;
  // No disk keeps a stream away.
  Status plain = configure_logging(s, LogFile{});
  log::warn("log.no_file", opened.error().message);
  return plain;
}

Result<int> egress(const Arguments& arguments) {
  hold_signals(SIG_BLOCK);
  hide_from_others();
  TRY(settings, arguments.settings());
  close_inherited(arguments.config_file());
  name_lines(settings);
  TRY(logging, open_log(settings));
  if (!settings.flag("egress_enabled")) {
    log::info("egress.disabled", "EGRESS_ENABLED is false: nothing is forwarded");
    return forward::kExitClean;
  }
  TRY(job, read_job(settings));
  log::set_common("inputUrl", redact_url(job.input.reveal()));
  log::set_common("destHost", job.to.port == (job.to.tls ? 443 : 1935) ? job.to.host
                                                                       : fmt::format("{}:{}", job.to.host, job.to.port));
  log::set_common("destApp", job.to.app);
  warn_of_exposed(settings);
  job.identity.restarts = count_restarts(log_folder(settings), job.identity);
  EgressProcess process(settings, std::move(job));
  TRY(started, process.start());
  process.run();
}

}  // namespace

int refuse_egress(const Error& error) {
  forward::Failure why = forward::failure_of(error);
  if (why.kind == forward::Kind::internal && error.code != Errc::internal) why.kind = forward::Kind::config_invalid;
  int code = row_of(why.kind).exit;
  log::error("egress.exit", std::string(row_of(why.kind).advice))
      .with("exitCode", code)
      .with("reason", to_string(why.kind))
      .with("error.kind", to_string(why.kind))
      .with("error.message", error.message);
  return code;
}

Command egress_command() {
  return {"egress",
          "Forward one published stream to one RTMP destination, as it is",
          "weir-egress --config forward.yaml\n"
          "echo 'dest_rtmp_url: rtmp://live.example.com/app/KEY' | weir-egress --config - --egress-enabled true "
          "--stream-id s1 --run-id r1 --instance-id i1",
          "egress",
          {},
          egress,
          kDefaults};
}

}  // namespace weir::apps
