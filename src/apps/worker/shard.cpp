#include "shard.hpp"

#include "common/event_broker.hpp"
#include "common/files.hpp"
#include "common/logging.hpp"
#include "common/print.hpp"
#include "common/signals.hpp"
#include "detectors.hpp"
#include "print_bus.hpp"

#include "weir/base/log.hpp"
#include "weir/base/random.hpp"
#include "weir/base/spawn.hpp"
#include "weir/ffmpeg/source.hpp"
#include "weir/go2rtc/restream.hpp"
#include "weir/http_bus/http_bus.hpp"
#include "weir/link/protocol.hpp"
#include "weir/net/server.hpp"
#include "weir/posix/machine.hpp"
#include "weir/spool/file_spool.hpp"
#include "weir/worker/crash_record.hpp"
#include "weir/worker/endpoints.hpp"
#include "weir/worker/publisher_thread.hpp"
#include "weir/worker/worker.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <thread>

namespace weir::apps {

namespace asio = boost::asio;

namespace {

constexpr Duration kServerGrace = 500ms;

constexpr std::string_view kParentGone = "parent_gone";

static_assert(worker::kExitNoThreads == kExitTransient);

Error configuration_error(Error error) {
  error.code = Errc::invalid;
  error.reason = "configuration";
  return error;
}

Result<int> number_of(const Arguments& arguments, std::string_view name) {
  std::string text = arguments.text(name);
  int number = -1;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc{} || end != text.data() + text.size() || number < 0)
    return usage_error(fmt::format("--{} must be a whole number", name));
  return number;
}

Result<worker::ShardConfig> read_shard(const Arguments& arguments) {
  std::string text;
  if (arguments.has("config-json")) {
    text = arguments.text("config-json");
    if (text.find('@') != std::string::npos || text.find("token") != std::string::npos)
      log::warn("config.exposed", "credentials in --config-json can be read by everybody on this machine: use --config");
  } else if (arguments.has("config")) {
    auto read = read_file(arguments.text("config"), 64 << 20);
    if (!read) return configuration_error(read.error());
    text = *std::move(read);
  } else {
    return usage_error("--config or --config-json is needed");
  }
  auto parsed = json::parse_text(text);
  if (!parsed) return configuration_error(parsed.error());
  auto shard = worker::read_shard_config(*parsed);
  if (!shard) return configuration_error(shard.error());
  if (arguments.has("runner-id")) shard->runner = RunnerId::trusted(arguments.text("runner-id"));
  if (arguments.has("shard-id")) shard->shard = arguments.text("shard-id");
  return shard;
}

worker::WorkerSettings worker_settings(const Settings& s, const worker::ShardConfig& shard) {
  auto threads = static_cast<int>(s.integer("inference_threads"));
  if (threads == 0) threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return {.readiness_quorum_pct = static_cast<int>(s.integer("readiness_quorum_pct")),
          .summary_interval = shard.report_interval_s ? from_seconds(*shard.report_interval_s)
                                                      : s.duration("status_summary_interval_s"),
          .outage_grace = s.duration("outage_grace_s"),
          .adaptive_keyframe_max_s = s.number("adaptive_keyframe_max_s"),
          .dials_at_once = static_cast<int>(s.integer("dial_concurrency")),
          .dials_file = shard.dials_file,
          .inference_threads = threads,
          // The two time-outs bound a camera's calls; half a minute is for a machine that has too much to do.
          .patience = s.duration("connect_timeout_s") + s.duration("stall_timeout_s") + 30s};
}

// Loopback cameras make sense where everything stands on one machine.
bool loopback_allowed(const Settings& s, const worker::ShardConfig& shard) {
  std::string choice = s.text("loopback_cameras");
  bool local = shard.control_plane.empty() || shard.control_plane.find("//127.") != std::string::npos ||
               shard.control_plane.find("//localhost") != std::string::npos ||
               shard.control_plane.find("//[::1]") != std::string::npos;
  return choice == "allow" || (choice == "auto" && local);
}

// A camera by way of a go2rtc on this machine; its address is judged as if it were dialled from here.
Result<std::unique_ptr<VideoSource>> restreamed(const go2rtc::Config& through, const worker::DialRequest& request,
                                                const ffmpeg::SourceConfig& config) {
  auto judge = [loopback = config.loopback](const Secret& url) -> Result<Secret> {
    TRY(address, ffmpeg::resolve(url, loopback));
    return ffmpeg::url_at(url, address);
  };
  auto open = [&config](const Secret& url) {
    ffmpeg::SourceConfig local = config;
    local.url = url;
    local.loopback = true;
    return ffmpeg::make_source(local);
  };
  return go2rtc::make_restream(through, request.camera, request.url, judge, open);
}

worker::SourceFactory source_factory(const Settings& s, bool loopback) {
  ffmpeg::SourceConfig common{.loopback = loopback,
                              .files = true,
                              .connect_timeout = s.duration("connect_timeout_s"),
                              .stall_timeout = s.duration("stall_timeout_s")};
  std::optional<go2rtc::Config> through;
  if (s.text("source_mode") == "go2rtc")
    through = {s.text("go2rtc_api"), s.text("go2rtc_rtsp_base"), common.connect_timeout, common.stall_timeout};
  return [common, through](const worker::DialRequest& request) -> Result<std::unique_ptr<VideoSource>> {
    ffmpeg::SourceConfig config = common;
    config.url = request.url;
    config.transport = request.transport;
    if (request.snapshot_interval) config.snapshot_interval = *request.snapshot_interval;
    bool over_tcp = !request.snapshot_interval && request.transport == camera::Transport::tcp;
    if (through && over_tcp && go2rtc::can_restream(request.url)) return restreamed(*through, request, config);
    return ffmpeg::make_source(config);
  };
}

void end_stuck_process(int) {
  constexpr std::string_view said =
      "weir-worker: something hangs: the drain took longer than its grace (grace_timeout_s); ended without it\n";
  worker::write_unless_full(2, said);
  ::_exit(kExitInternal);
}

class ShardProcess {
 public:
  ShardProcess(Settings settings, worker::ShardConfig shard, bool print)
      : settings_(std::move(settings)), shard_(std::move(shard)), print_(print) {}

  Status start();
  Status watch_lifeline(int fd);
  Status watch_manager(int pid);
  [[noreturn]] void run();

 private:
  Status open_publisher();
  void grant_everything();
  void hear(int signal);
  bool is_mute();
  void begin_drain(std::string_view why, int code);
  asio::awaitable<void> drain(int code);
  void parent_gone();

  // Constant after construction.
  const Settings settings_;
  worker::ShardConfig shard_;
  const bool print_;
  // In the order of construction; destroyed in reverse.
  asio::io_context io_{1};
  RealClock clock_;
  net::Metrics metrics_;
  std::function<void(std::string, Secret)> set_bus_ = [](const std::string&, const Secret&) {};
  std::unique_ptr<worker::PublisherThread> publisher_;
  std::unique_ptr<worker::Worker> worker_;
  std::optional<worker::Endpoints> endpoints_;
  net::Router router_;
  std::unique_ptr<net::HttpServer> server_;
  Signals signals_{io_};
  asio::posix::stream_descriptor lifeline_{io_}, manager_{io_};
  std::optional<Instant> draining_since_;
  bool threads_left_ = false;
  bool mute_ = false;
  int code_ = 0;
};

// The publisher with its thread; its bus belongs to that thread's loop.
Status ShardProcess::open_publisher() {
  TRY(broker, event_broker(settings_));
  if (broker) shard_.broker = std::move(broker);
  if (!print_ && !shard_.broker && shard_.control_plane.empty())
    return Error{Errc::invalid, "configuration",
                 "cp.base_url or amqp is required, unless events are printed with --print"};
  std::string ca_file = settings_.text("control_plane_ca_file");
  if (!print_ && !shard_.broker) {
    TRY(usable, net::HttpClient::create(io_, shard_.control_plane, {.ca_file = ca_file}));
  }
  TRY(folder, spool_folder(settings_));
  TRY(spool, spool::open_file_spool(
                 folder, {.total_bytes = static_cast<std::uint64_t>(settings_.integer("spool_bytes_max"))}));
  auto make_bus = [this, ca_file](asio::io_context& io) -> std::unique_ptr<EventBus> {
    if (print_) return std::make_unique<PrintBus>();
    if (shard_.broker) return std::make_unique<rabbitmq::RabbitBus>(io, rabbitmq_config(*shard_.broker));
    auto bus = *http_bus::HttpBus::create(
        io, {.base_url = shard_.control_plane, .token = shard_.token, .ca_file = ca_file});
    set_bus_ = [&io, http = bus.get()](std::string url, Secret token) {
      asio::post(io, [http, url = std::move(url), token = std::move(token)] {
        if (!url.empty() && !http->use(url)) log::warn("bus.refused", "the control plane's new address is not a URL");
        if (!token.empty()) http->set_token(token);
      });
    };
    return bus;
  };
  net::Histogram& handed = metrics_.histogram("weir_publish_latency_seconds",
                                              "From a picture's decoding to its event handed to the bus, the detector "
                                              "left out",
                                              net::Metrics::latency_buckets());
  worker::PublisherHooks hooks;
  hooks.on_handed = [&handed](Duration took) { handed.observe(seconds(took)); };
  hooks.on_stale = [this](const CameraId& camera, lease::Version version) {
    asio::post(io_, [this, camera, version] {
      // Stale is not lost: where there is a manager, only the store's answer to the manager ends the camera ("Lost is
      // only a typed answer" in docs/lease-protocol.md).
      if (lifeline_.is_open() || manager_.is_open()) return;
      worker_->refused(camera, version);
      if (worker_->lost_all()) begin_drain("the leases of all its cameras are gone", kExitLeaseLost);
    });
  };
  publisher_ = std::make_unique<worker::PublisherThread>(make_bus, std::move(spool), worker::PublisherSettings{}, hooks);
  return ok();
}

// Nobody else prints these events, so the worker needs no lease: it grants itself every camera.
void ShardProcess::grant_everything() {
  for (const worker::Source& source : shard_.sources)
    worker_->grant({.camera = source.config.camera,
                    .version = {1},
                    .tenure = {BootId::trusted(random_hex(8)), {1}},
                    .valid_until = clock_.now() + std::chrono::hours(24 * 3650)});
}

Status ShardProcess::start() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);  // "read the settings again" is said to managers; a worker is told by its own
  signals_.add({SIGTERM, SIGINT});
  signals_.hear([this](int signal) { hear(signal); });
  TRY(recorded, worker::install_crash_record(shard_.crash_file));
  TRY(opened, open_publisher());
  metrics_.add_process_metrics();
  // Everything that can fail is done before a camera's thread starts, because that thread uses what a failure would
  // destroy.
  server_ = std::make_unique<net::HttpServer>(io_, clock_, router_, net::ServerLimits{});
  TRY(listening, server_->listen_from("127.0.0.1", static_cast<int>(settings_.integer("prom_worker_port"))));
  worker_ = std::make_unique<worker::Worker>(clock_, metrics_, publisher_->publisher(), shard_, worker_settings(settings_, shard_),
                                             source_factory(settings_, loopback_allowed(settings_, shard_)),
                                             detector_factory(detector_folders(settings_)));
  if (print_) grant_everything();
  Secret token = shard_.control_token.empty() ? Secret(random_hex(32)) : shard_.control_token;
  endpoints_.emplace(worker::Endpoints{
      .worker = *worker_,
      .metrics = metrics_,
      .runner = shard_.runner,
      .token = token,
      .drain = [this] { begin_drain("asked to drain", 0); },
      .terminate = [] { std::thread([] { ::usleep(50'000); ::_exit(0); }).detach(); },
      .set_bus = set_bus_,
      .mute = [this] { return is_mute(); }});
  worker::add_endpoints(router_, *endpoints_);
  link::Ready ready{.control = "http://" + server_->address(), .pid = ::getpid(), .protocol = link::kProtocol};
  // A manager that gave the token knows it; a person who started this worker by hand needs to be told it.
  if (shard_.control_token.empty() && ::isatty(1) == 1) ready.token = token;
  if (!print_) print_line(json::to_text(json::write_value(ready)));
  log::info("worker.started", "a worker runs")
      .with("shard_id", shard_.shard)
      .with("cameras", shard_.sources.size())
      .with("address", server_->address())
      .with("standby", shard_.standby);
  return ok();
}

void ShardProcess::parent_gone() {
  if (draining_since_) return;
  log::error("worker.parent_gone", "the manager is gone; this worker ends");
  begin_drain("the parent is gone", kExitParentGone);
}

// Only the parent holds the other end: an end of file means that the parent has ended.
Status ShardProcess::watch_lifeline(int fd) {
  boost::system::error_code bad;
  lifeline_.assign(fd, bad);
  if (bad) return usage_error("--lifeline-fd is not an open pipe");
  lifeline_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& cancelled) {
    if (!cancelled) parent_gone();
  });
  return ok();
}

Status ShardProcess::watch_manager(int pid) {
  auto fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0 && errno == ESRCH)
    return Error{Errc::unavailable, std::string(kParentGone),
                 fmt::format("the manager, process {}, is gone; a worker ends with it", pid)};
  if (fd < 0)
    return Error{Errc::unavailable, "manager_pid", fmt::format("cannot watch process {}: {}", pid, std::strerror(errno))};
  manager_.assign(fd);
  manager_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& cancelled) {
    if (!cancelled) parent_gone();
  });
  return ok();
}

void ShardProcess::hear(int signal) {
  // A supervisor that signals everybody, and the manager that asks at the same time, mean one and the same stop.
  if (draining_since_ && clock_.now() > *draining_since_ + 2s) ::_exit(128 + signal);
  begin_drain(signal == SIGINT ? "interrupted" : "terminated", 0);
}

bool ShardProcess::is_mute() {
  bool stuck = publisher_->stuck();
  if (std::exchange(mute_, stuck) == stuck) return stuck;
  if (stuck) log::error("publisher.stuck", "the disk of the spool does not answer: events are neither published nor kept");
  else log::info("publisher.back", "the disk of the spool answers again");
  return stuck;
}

void ShardProcess::begin_drain(std::string_view why, int code) {
  if (draining_since_) return;
  draining_since_ = clock_.now();
  log::info("worker.draining", std::string(why));
  std::signal(SIGALRM, end_stuck_process);
  ::alarm(static_cast<unsigned>(std::ceil(seconds(settings_.duration("grace_timeout_s")))));
  spawn(io_.get_executor(), drain(code), "the drain");
}

// The reverse of the data's way: cameras, then events, then the endpoints.
asio::awaitable<void> ShardProcess::drain(int code) {
  Duration grace = code == kExitParentGone ? Duration(1s) : settings_.duration("grace_timeout_s") - 1s;
  Instant until = clock_.now() + std::max(grace, Duration(500ms));
  threads_left_ = !co_await worker_->drain(clock_.now() + (until - clock_.now()) / 2);
  co_await publisher_->publisher().flush_and_stop(until);
  code_ = code == 0 && threads_left_ ? kExitTransient : code;
  co_await server_->stop(kServerGrace);
  io_.stop();
}

void ShardProcess::run() {
  spawn(io_.get_executor(), worker_->run(), "the worker");
  io_.run();
  log::info("worker.stopped", threads_left_ ? "stopped; a camera's thread hung and ends with the process" : "stopped")
      .with("exit_code", code_);
  // A thread that hangs in a name lookup cannot be joined, and what it uses must not be destroyed under it; and a signal
  // that comes now must not end what has ended well.
  std::fflush(stdout);
  ::_exit(code_);
}

Result<int> shard(const Arguments& arguments) {
  auto settings = arguments.settings();
  if (!settings) return configuration_error(settings.error());
  TRY(logging, configure_logging(*settings));
  TRY(config, read_shard(arguments));
  log::set_common("runner_id", config.runner.str());
  log::set_common("shard_id", config.shard);
  posix::raise_descriptor_limit();
  ShardProcess process(*settings, std::move(config), arguments.has("print"));
  // Watched before anybody is told that this worker runs.
  if (arguments.has("lifeline-fd")) {
    TRY(fd, number_of(arguments, "lifeline-fd"));
    TRY(watching, process.watch_lifeline(fd));
  }
  if (arguments.has("manager-pid")) {
    TRY(pid, number_of(arguments, "manager-pid"));
    TRY(watching, process.watch_manager(pid));
  }
  TRY(started, process.start());
  process.run();
}

}  // namespace

int shard_exit_code(const Error& error) {
  if (error.reason == kParentGone) return kExitParentGone;
  if (error.code == Errc::internal) return kExitInternal;
  bool later = error.code == Errc::unavailable || error.code == Errc::conflict || error.code == Errc::too_many;
  return later ? kExitTransient : kExitConfiguration;
}

Command shard_command() {
  return {"shard",
          "Process the cameras of one shard",
          "weir-worker shard --config shard.json\nweir-worker shard --config shard.json --print",
          "worker",
          {{"config", "FILE", "The shard's configuration (JSON); - reads standard input"},
           {"config-json", "JSON", "The same as text; for trying things by hand: it can be seen in /proc"},
           {"runner-id", "ID", "Instead of the configuration's runner_id"},
           {"shard-id", "ID", "Instead of the configuration's shard_id"},
           {"manager-pid", "PID", "End when this process is gone"},
           {"lifeline-fd", "FD", "End when this pipe is closed at its other end"},
           {"print", "", "Print events on standard output instead of publishing them; needs no lease"}},
          shard};
}

}  // namespace weir::apps
