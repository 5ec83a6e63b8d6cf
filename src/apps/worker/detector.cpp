#include "detector.hpp"

#include "common/files.hpp"
#include "common/logging.hpp"
#include "common/print.hpp"
#include "common/signals.hpp"
#include "detectors.hpp"
#include "model_facts.hpp"
#include "shard.hpp"

#include "weir/base/log.hpp"
#include "weir/base/random.hpp"
#include "weir/base/spawn.hpp"
#include "weir/detector/endpoints.hpp"
#include "weir/detector/model_store.hpp"
#include "weir/ffmpeg/source.hpp"
#include "weir/model_disk/folder_disk.hpp"
#include "weir/net/addressee.hpp"
#include "weir/net/server.hpp"
#include "weir/posix/locked_file.hpp"
#include "weir/posix/machine.hpp"
#include "weir/worker/crash_record.hpp"
#include "weir/worker/worker.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <unistd.h>

#include <cmath>
#include <csignal>
#include <thread>

namespace weir::apps {

namespace asio = boost::asio;

namespace {

constexpr std::string_view kListen = "127.0.0.1:8000";
constexpr std::pair<std::string_view, std::string_view> kDefaults[] = {{"listen", kListen}};
constexpr Duration kServerGrace = 500ms;
constexpr Duration kModelsKept = 10min;  // a file that no subscription has yet may be about to get one

// What the cameras' threads say, on its way to the master. How a stream is doing the master learns from state reports.
class SightingOutlet final : public worker::Outlet {
 public:
  explicit SightingOutlet(detector::Sightings& sightings) : sightings_(sightings) {}
  void say(event::DetectionEvent seen, Instant) override {
    detector::Sighting sighting{seen.place.camera, seen.ts};
    for (event::SeenObject& each : seen.detections)
      sighting.boxes.push_back({std::move(each.label), each.conf, each.bbox_xyxy});
    sightings_.put(std::move(sighting));
  }
  void say(event::StreamStatus, event::Kind) override {}
  void say(event::StreamErrorEvent) override {}

 private:
  detector::Sightings& sightings_;
};

class WorkerCameras final : public detector::Cameras {
 public:
  WorkerCameras(asio::io_context& io, worker::Worker& worker) : io_(io), worker_(worker) {}
  void add(link::Source source) override { worker_.add(std::move(source)); }
  void remove(const CameraId& camera) override {
    spawn(io_.get_executor(), see_off(worker_.remove(camera)), "the end of a camera");
  }
  std::set<CameraId> online() const override {
    std::set<CameraId> out;
    for (link::SeenCamera& each : worker_.look().cameras)
      if (each.streaming && !each.error) out.insert(std::move(each.camera));
    return out;
  }
  PicturePtr latest(const CameraId& camera) const override { return worker_.latest(camera); }

 private:
  static asio::awaitable<void> see_off(asio::awaitable<std::optional<WallTime>> leaving) {
    co_await std::move(leaving);
  }
  asio::io_context& io_;
  worker::Worker& worker_;
};

worker::WorkerSettings worker_settings(const Settings& s) {
  auto threads = static_cast<int>(s.integer("inference_threads"));
  if (threads == 0) threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return {.adaptive_keyframe_max_s = s.number("adaptive_keyframe_max_s"),
          .dials_at_once = static_cast<int>(s.integer("dial_concurrency")),
          .inference_threads = threads,
          .patience = s.duration("connect_timeout_s") + s.duration("stall_timeout_s") + 30s};
}

// Cameras on this machine make sense where the master is on it as well.
worker::SourceFactory source_factory(const Settings& s, bool local) {
  std::string choice = s.text("loopback_cameras");
  ffmpeg::SourceConfig common{.loopback = choice == "allow" || (choice == "auto" && local),
                              .connect_timeout = s.duration("connect_timeout_s"),
                              .stall_timeout = s.duration("stall_timeout_s")};
  return [common](const worker::DialRequest& request) {
    ffmpeg::SourceConfig config = common;
    config.url = request.url;
    config.transport = request.transport;
    if (request.snapshot_interval) config.snapshot_interval = *request.snapshot_interval;
    return ffmpeg::make_source(config);
  };
}

Result<detector::HostList> listed_hosts(const Settings& s, std::string_view name) {
  auto listed = detector::HostList::parse(s.text(name));
  return listed ? listed : s.refused(name, "hosts with commas between: " + listed.error().message);
}

Result<detector::HostList> model_hosts(const Settings& s) {
  TRY(listed, listed_hosts(s, "detector_model_hosts"));
  if (!listed.empty()) return listed;
  TRY(of_plane, detector::HostList::of_urls(s.text("control_plane_url")));
  return of_plane.empty() ? detector::HostList::loopback() : of_plane;
}

void end_stuck_process(int) {
  worker::write_unless_full(2, "weir-worker: something hangs: the stop took longer than its grace (grace_timeout_s)\n");
  ::_exit(kExitInternal);
}

class DetectorProcess {
 public:
  explicit DetectorProcess(const Settings& settings)
      : settings_(settings),
        listen_(settings.origin("listen") == "default" ? std::string(kListen) : settings.text("listen")) {}
  Status start(const std::string& token_file);
  [[noreturn]] void run();

 private:
  Result<Secret> read_token(std::string token_file) const;
  Status open_models();
  Status open_cameras();
  Async<detector::ModelFacts> inspect(std::string sha256);
  detector::Usage usage();
  void hear(int signal);
  asio::awaitable<void> stop();

  const Settings settings_;
  const std::string listen_;
  // In the order of construction; the process ends without destroying them.
  asio::io_context io_{1};
  asio::thread_pool reading_{1};  // models' files
  RealClock clock_;
  net::Metrics metrics_;
  posix::Machine machine_;
  bool looked_ = false;
  std::string models_folder_;
  std::optional<posix::LockedFile> models_lock_;
  std::unique_ptr<model_disk::FolderDisk> disk_;
  std::unique_ptr<detector::ModelStore> store_;
  detector::Sightings sightings_{[this] { asio::post(io_, [this] { link_->deliver(); }); }};
  SightingOutlet outlet_{sightings_};
  std::unique_ptr<worker::Worker> worker_;
  std::unique_ptr<WorkerCameras> cameras_;
  std::unique_ptr<detector::Roster> roster_;
  std::unique_ptr<detector::MasterLink> link_;
  net::Router router_;
  std::unique_ptr<net::HttpServer> server_;
  Signals signals_{io_};
  std::optional<Instant> stopping_since_;
  int code_ = 0;
};

Result<Secret> DetectorProcess::read_token(std::string token_file) const {
  if (token_file.empty()) token_file = settings_.text("detector_token_file");
  if (token_file.empty() && net::names_loopback(listen_)) return Secret();
  if (token_file.empty())
    return usage_error(fmt::format("whoever reaches {} could have this worker dial any camera: give it a token with "
                                   "--token-file FILE, which `weir cluster` shows with --detector-token-file, or "
                                   "--listen on 127.0.0.1",
                                   listen_));
  TRY(text, read_file(token_file, 16 << 10));
  Secret token(trimmed(text));
  if (token.empty()) return usage_error(token_file + " holds no token");
  return token;
}

Status DetectorProcess::open_models() {
  std::string chosen = settings_.text("detector_models_dir");
  models_folder_ = chosen.empty() ? settings_.text("state_dir") + "/detector-models" : chosen;
  TRY(made, make_private_folder(models_folder_));
  TRY(lock, posix::LockedFile::take(models_folder_ + "/worker", posix::Heirs::nobody,
                                    models_folder_ + " is another detection worker's: give this one a folder of its "
                                                     "own with --detector-models-dir"));
  models_lock_.emplace(std::move(lock));
  TRY(hosts, model_hosts(settings_));
  disk_ = std::make_unique<model_disk::FolderDisk>(models_folder_, kModelsKept);
  detector::ModelStoreConfig config{.hosts = hosts, .ca_file = settings_.text("control_plane_ca_file")};
  store_ = std::make_unique<detector::ModelStore>(
      io_, clock_, *disk_, std::move(config), [this](std::string sha256) { return inspect(std::move(sha256)); },
      [this] { return roster_->models(); });
  return ok();
}

// Read on a thread of its own: the file may be large, and the disk may hang.
Async<detector::ModelFacts> DetectorProcess::inspect(std::string sha256) {
  std::string path = models_folder_ + "/" + sha256;
  auto facts = std::make_shared<Result<detector::ModelFacts>>(Error{Errc::internal, "model", "the file was not read"});
  auto job = [](std::string what, std::shared_ptr<Result<detector::ModelFacts>> into) -> asio::awaitable<void> {
    *into = model_facts(what);
    co_return;
  };
  co_await asio::co_spawn(reading_, job(std::move(path), facts), asio::use_awaitable);
  co_return std::move(*facts);
}

Status DetectorProcess::open_cameras() {
  TRY(snapshot_hosts, listed_hosts(settings_, "detector_snapshot_hosts"));
  worker::ShardConfig none{.runner = RunnerId::trusted("detector"), .shard = "detector"};
  worker_ = std::make_unique<worker::Worker>(clock_, metrics_, outlet_, none, worker_settings(settings_),
                                             source_factory(settings_, net::names_loopback(listen_)),
                                             file_detector_factory(models_folder_, detector_folders(settings_)));
  cameras_ = std::make_unique<WorkerCameras>(io_, *worker_);
  detector::RosterSettings roster{.max_fps = settings_.number("detector_max_fps"),
                                  .min_score = settings_.number("detector_min_score"),
                                  .motion_gate = settings_.flag("detector_motion_gate"),
                                  .snapshot_hosts = snapshot_hosts};
  roster_ = std::make_unique<detector::Roster>(io_, clock_, *cameras_, *store_, sightings_, metrics_, std::move(roster),
                                               random_unit);
  link_ = std::make_unique<detector::MasterLink>(io_, clock_, *roster_, sightings_, metrics_,
                                                 [this] { return usage(); });
  return ok();
}

// The first look has nothing to compare the processors' counters with.
detector::Usage DetectorProcess::usage() {
  bool compared = std::exchange(looked_, true);
  posix::MachineUsage now = machine_.look({});
  return {.cpu_percent = compared ? std::optional(now.host_cpu_pct) : std::nullopt, .memory_percent = now.host_mem_pct};
}

Status DetectorProcess::start(const std::string& token_file) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);
  signals_.add({SIGTERM, SIGINT});
  signals_.hear([this](int signal) { hear(signal); });
  TRY(recorded, worker::install_crash_record(""));
  TRY(token, read_token(token_file));
  posix::raise_descriptor_limit();
  TRY(models, open_models());
  metrics_.add_process_metrics();
  // Whoever connects before the cameras' threads are there waits in the listener's queue: the loop does not run yet.
  server_ = std::make_unique<net::HttpServer>(io_, clock_, router_, net::ServerLimits{.connections_max = 256});
  TRY(listening, server_->listen(listen_));
  TRY(cameras, open_cameras());
  detector::add_endpoints(router_, {.master = *link_, .roster = *roster_, .metrics = metrics_, .token = token});
  print_line("listening on ws://" + server_->address());
  log::info("detector.started", "a detection worker waits for its master").with("address", server_->address());
  return ok();
}

void DetectorProcess::hear(int signal) {
  if (stopping_since_) {
    if (clock_.now() > *stopping_since_ + 2s) ::_exit(128 + signal);
    return;
  }
  stopping_since_ = clock_.now();
  log::info("detector.stopping", "closes its connections and stops its cameras");
  std::signal(SIGALRM, end_stuck_process);
  ::alarm(static_cast<unsigned>(std::ceil(seconds(settings_.duration("grace_timeout_s")))));
  spawn(io_.get_executor(), stop(), "the stop");
}

asio::awaitable<void> DetectorProcess::stop() {
  link_->stop();
  co_await server_->stop(kServerGrace);
  Duration grace = std::max(settings_.duration("grace_timeout_s") - 1s, Duration(500ms));
  if (!co_await worker_->drain(*stopping_since_ + grace)) code_ = kExitTransient;
  io_.stop();
}

void DetectorProcess::run() {
  spawn(io_.get_executor(), worker_->run(), "the cameras");
  spawn(io_.get_executor(), link_->run(), "the reports to the master");
  io_.run();
  log::info("detector.stopped", code_ == 0 ? "stopped" : "stopped; a camera's thread hung and ends with the process")
      .with("exit_code", code_);
  std::fflush(stdout);
  ::_exit(code_);  // a thread that hangs cannot be joined, and what it uses must not be destroyed under it
}

Result<int> run_detector(const Arguments& arguments) {
  TRY(settings, arguments.settings());
  TRY(logging, configure_logging(settings));
  log::set_common("service", "detector");
  DetectorProcess process(settings);
  TRY(started, process.start(arguments.text("token-file")));
  process.run();
}

}  // namespace

Command detector_command() {
  return {"detector",
          "Detect for a detector cluster: a WebSocket server that `weir cluster` connects to",
          "weir-worker detector --listen 127.0.0.1:8000\n"
          "weir-worker detector --listen 0.0.0.0:8000 --token-file token --detector-model-hosts plane.example:8080",
          "detector",
          {{"token-file", "FILE", "The token that the master must show, instead of detector_token_file"}},
          run_detector,
          kDefaults};
}

}  // namespace weir::apps
