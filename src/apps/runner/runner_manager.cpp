#include "runner_manager.hpp"

#include "common/api.hpp"
#include "common/command.hpp"
#include "common/event_broker.hpp"
#include "common/files.hpp"
#include "common/print.hpp"
#include "common/settings_watch.hpp"
#include "common/signals.hpp"
#include "runner.hpp"
#include "size/measuring.hpp"
#include "split_bus.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/log.hpp"
#include "weir/base/random.hpp"
#include "weir/base/spawn.hpp"
#include "weir/http_bus/http_bus.hpp"
#include "weir/http_plane/http_plane.hpp"
#include "weir/http_worker/http_worker.hpp"
#include "weir/net/server.hpp"
#include "weir/posix/child_process.hpp"
#include "weir/posix/machine.hpp"
#include "weir/runner/endpoints.hpp"
#include "weir/runner/manager.hpp"
#include "weir/runner_disk/file_disk.hpp"
#include "weir/spool/file_spool.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>

namespace weir::apps {

namespace asio = boost::asio;

namespace {

constexpr std::array<std::string_view, 7> kLive = {"control_plane_url", "api_key", "lease_ttl_s", "lease_renew_interval_s",
                                                   "lease_retry_interval_s", "drain_batch", "drain_interval_s"};

int port_of(std::string_view address) {
  int port = 0;
  std::from_chars(address.data() + address.rfind(':') + 1, address.data() + address.size(), port);
  return port;
}

Runner about_self(const Settings& s, const RunnerOptions& options) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  Runner self{.id = options.runner, .address = {.host = host}};
  self.tenant = TenantId::trusted(s.text("runner_tenant"));
  self.site = SiteId::trusted(s.text("runner_site"));
  self.capabilities = {"rtsp", "snapshot", "motion_detection", "zone_filtering"};
  self.deployment.group = s.text("deployment_group");
  self.deployment.version = s.text("deployment_version").empty() ? WEIR_VERSION : s.text("deployment_version");
  // Made here, in the process that owns it: never inherited, never two processes'.
  self.boot = BootId::trusted(random_hex(16));
  return self;
}

class ManagerProcess {
 public:
  ManagerProcess(const Arguments& arguments, const Settings& settings, RunnerOptions options)
      : settings_(settings),
        options_(std::move(options)),
        self_(about_self(settings, options_)),
        watch_(io_, arguments, settings, {kLive.begin(), kLive.end()}, [this](const Settings& s) { return change(s); }) {}

  Result<int> run();

 private:
  Status connect();
  Status open_spool();
  Status listen();
  asio::awaitable<void> learn_capacity();
  runner::ManagerSettings manager_settings();
  asio::awaitable<std::vector<ModelLabels>> models();
  void hear(int signal);
  Status change(const Settings& fresh);
  void watch_parent();
  asio::awaitable<void> watch_binary();

  const Settings settings_;
  const RunnerOptions options_;
  Runner self_;
  runner::Policy policy_ = policy_of(settings_);
  asio::io_context io_{1};
  RealClock clock_;
  net::Metrics metrics_;
  posix::PosixHost host_{io_};
  posix::Machine machine_;
  std::unique_ptr<http_plane::HttpPlane> plane_;
  std::unique_ptr<http_bus::HttpBus> bus_;
  std::optional<link::Broker> broker_;
  std::unique_ptr<rabbitmq::RabbitBus> voice_;  // where there is a broker
  std::unique_ptr<SplitBus> split_;
  http_worker::HttpWorkers workers_{io_, host_, {posix::helper_path("worker"), passed_on(settings_, "worker")}};
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<runner_disk::FileDisk> disk_;
  std::unique_ptr<runner::Manager> manager_;
  net::Router router_;
  std::unique_ptr<net::HttpServer> server_;
  Signals signals_{io_};
  SettingsWatch watch_;
  asio::posix::stream_descriptor parent_{io_};
  int code_ = kExitBroken;
  std::optional<Instant> stopping_since_;
};

Status ManagerProcess::connect() {
  http_plane::Config config{.url = options_.control_plane, .runner = options_.runner, .api_key = options_.api_key,
                            .token = options_.token, .token_file = options_.token_file, .ca_file = options_.ca_file};
  if (config.api_key.empty() && config.token.empty()) {
    std::string file = secret_file(settings_);
    if (::access(file.c_str(), R_OK) != 0)
      return usage_error(fmt::format("a runner needs API_KEY (`weir key add --role runner --sub {}`), --token-file, or a "
                                     "readable {}", options_.runner.str(), file));
    TRY(key, net::TokenKey::load_or_create(file));
    config.key = key;
  }
  TRY(plane, http_plane::HttpPlane::create(io_, clock_, std::move(config)));
  plane_ = std::move(plane);
  TRY(bus, http_bus::HttpBus::create(io_, {.base_url = options_.control_plane, .token = Secret(),
                                               .ca_file = options_.ca_file}));
  bus_ = std::move(bus);
  TRY(broker, event_broker(settings_));
  broker_ = std::move(broker);
  if (!broker_) return ok();
  voice_ = std::make_unique<rabbitmq::RabbitBus>(io_, rabbitmq_config(*broker_));
  split_ = std::make_unique<SplitBus>(*voice_, *bus_);
  return ok();
}

// The runner announces how many cameras it can really take: no lease should be left to a runner that has no worker
// for it.
asio::awaitable<void> ManagerProcess::learn_capacity() {
  std::string because =
      fmt::format("{} cameras: capacity_streams ({})", policy_.capacity, settings_.origin("capacity_streams"));
  if (policy_.capacity == 0) {
    Capacity measured = co_await machine_capacity(host_, clock_, settings_);
    policy_.capacity = measured.cameras;
    because = std::move(measured.because);
  }
  self_.capacity = policy_.room();
  if (self_.capacity < policy_.capacity)
    because += fmt::format("; but {} workers (max_workers) of {} cameras each take {}", policy_.workers_max,
                           policy_.shard_size, self_.capacity);
  log::info("runner.capacity", std::move(because)).with("capacity_streams", self_.capacity);
}

runner::ManagerSettings ManagerProcess::manager_settings() {
  runner::ManagerSettings out;
  out.self = self_;
  out.policy = policy_;
  out.filter = {self_.tenant, self_.site};
  out.folder = options_.folder;
  out.heartbeat = settings_.duration("heartbeat_interval_s");
  out.cpu_high_pct = settings_.number("cpu_high_pct");
  out.mem_high_pct = settings_.number("mem_high_pct");
  out.usage = [this](const std::vector<int>& pids) -> runner::Usage {
    std::vector<int> all = pids;
    all.push_back(::getpid());
    posix::MachineUsage use = machine_.look(all);
    return {use.cpu_pct, use.mem_mb, use.host_cpu_pct, use.host_mem_pct};
  };
  // The parent reads this line; it is told before the first lease is asked for.
  out.on_will = [](const BootId& boot, const Secret& will) {
    print_line(json::to_text(json::object{{"boot_id", boot.str()}, {"will", will.reveal()}}));
  };
  out.use_bus_token = [this](const Secret& token) { bus_->set_token(token); };
  out.models = [this] { return models(); };
  out.control_plane_url = options_.control_plane;
  out.broker = broker_;
  return out;
}

// The helper that can read models lists their labels: a file that is damaged, or on a disk that hangs, costs the
// control plane's advice on labels and nothing else.
asio::awaitable<std::vector<ModelLabels>> ManagerProcess::models() {
  using namespace asio::experimental::awaitable_operators;
  constexpr Duration kWithin = 5s;
  auto unknown = [](std::string_view why) {
    log::warn("runner.models_unknown", fmt::format("the labels of the models here could not be read: {}", why));
    return std::vector<ModelLabels>();
  };
  Program program{.path = posix::helper_path("worker"), .arguments = passed_on(settings_, "labels")};
  program.arguments.insert(program.arguments.begin(), {"labels", "--json"});
  auto child = host_.start(program);
  if (!child) co_return unknown(child.error().message);
  auto said = co_await ((*child)->read_line() || clock_.wait(kWithin));
  if (said.index() == 1)
    co_return unknown(fmt::format("`weir-worker labels` took longer than {:.0f} s", seconds(kWithin)));
  const auto& line = std::get<0>(said);
  auto told = line ? json::parse_text(*line) : Result<json::value>(line.error());
  const json::value* items = told && told->is_object() ? told->get_object().if_contains("items") : nullptr;
  if (items == nullptr) co_return unknown(told ? "`weir-worker labels` is of another version" : told.error().message);
  auto models = json::read<std::vector<ModelLabels>>(*items);
  if (!models) co_return unknown(models.error().message);
  if (auto problem = models_problem(*models); !problem.empty()) co_return unknown(problem);
  co_return *std::move(models);
}

// Each runner has a spool folder of its own: it must not drop what another runner's workers left.
Status ManagerProcess::open_spool() {
  TRY(folder, spool_folder(settings_));
  TRY(spool, spool::open_file_spool(folder, {}));
  spool_ = std::move(spool);
  disk_ = std::make_unique<runner_disk::FileDisk>(io_, options_.folder, *spool_);
  std::string path = folder + "/.runner";
  int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file >= 0 && ::flock(file, LOCK_EX | LOCK_NB) == 0) return ok();  // until this process ends
  if (file >= 0 && errno == EWOULDBLOCK)
    return Error{Errc::conflict, "spool_dir",
                 fmt::format("{}: another runner spools there; give each its own --spool-dir", folder)};
  // A disk that is full or broken costs events, not cameras.
  log::warn("spool.unlocked", std::strerror(errno)).with("path", path);
  return ok();
}

Status ManagerProcess::listen() {
  server_ = std::make_unique<net::HttpServer>(io_, clock_, router_, net::ServerLimits{});
  Status listening = server_->listen_down_from(settings_.text("prom_manager_host"),
                                               static_cast<int>(settings_.integer("prom_manager_port")));
  if (listening) self_.address.port = self_.address.metrics_port = port_of(server_->address());
  if (listening || listening.error().reason != "address_in_use") return listening;
  return Error{Errc::conflict, "address_in_use",
               listening.error().message + "; give this runner a --prom-manager-port of its own"};
}

void ManagerProcess::hear(int signal) {
  if (!manager_ && signal != SIGHUP) ::_exit(0);  // still measuring, and it holds nothing
  if (!manager_) return;
  if (signal == SIGHUP) return watch_.read_again();
  // A supervisor that signals the whole group, and the parent that passes its own on, mean one and the same stop.
  if (stopping_since_ && clock_.now() > *stopping_since_ + 2s) ::_exit(128 + signal);
  if (stopping_since_) return;
  manager_->stop(settings_.duration("drain_timeout_s"));
  stopping_since_ = clock_.now();
}

// The parent is told the new address, for the last will.
Status ManagerProcess::change(const Settings& fresh) {
  TRY(options, runner_options(fresh, ""));
  TRY(known, plane_->use(options.control_plane, options.api_key));
  TRY(reached, bus_->use(options.control_plane));
  manager_->change(policy_of(fresh), options.control_plane);
  print_line(json::to_text(json::object{{"control_plane", options.control_plane}}));
  return ok();
}

// The parent holds the other end of the pipe. Without a parent nobody would send the last will, so this process ends,
// and its workers with it.
void ManagerProcess::watch_parent() {
  boost::system::error_code bad;
  parent_.assign(0, bad);
  if (bad) return;
  parent_.async_wait(asio::posix::stream_descriptor::wait_read, [](const boost::system::error_code& cancelled) {
    if (cancelled) return;
    log::error("runner.parent_gone", "the parent process is gone; this runner ends");
    ::_exit(kExitParentGone);
  });
}

// A package upgrade replaces the worker's file: its workers are replaced one shard after the other.
asio::awaitable<void> ManagerProcess::watch_binary() {
  struct stat first {};
  std::string path = posix::helper_path("worker");
  ::stat(path.c_str(), &first);
  for (;;) {
    co_await clock_.wait(5s);
    struct stat now {};
    bool there = ::stat(path.c_str(), &now) == 0 && now.st_size > 0;
    bool changed = now.st_ino != first.st_ino || now.st_mtim.tv_sec != first.st_mtim.tv_sec;
    bool settled = ::time(nullptr) - now.st_mtim.tv_sec > 2;  // not in the middle of being written
    if (!there || !changed || !settled) continue;
    first = now;
    manager_->binary_changed();
  }
}

Result<int> ManagerProcess::run() {
  std::signal(SIGPIPE, SIG_IGN);
  TRY(connected, connect());
  TRY(spool, open_spool());
  metrics_.add_process_metrics();
  signals_.add({SIGTERM, SIGINT, SIGHUP});
  signals_.hear([this](int signal) { hear(signal); });
  spawn(io_.get_executor(), learn_capacity(), "measuring", [this] { io_.stop(); });
  io_.run();
  io_.restart();
  TRY(listening, listen());  // nobody is answered before the loop runs again
  EventBus& bus = split_ ? static_cast<EventBus&>(*split_) : *bus_;
  runner::ManagerPorts ports{clock_, *plane_, bus, workers_, *disk_};
  manager_ = std::make_unique<runner::Manager>(io_, ports, metrics_, manager_settings());
  runner::add_endpoints(router_, *manager_, metrics_);
  print_line(json::to_text(json::object{{"listening", url_of(server_->address())}}));
  log::info("runner.started", "a runner runs").with("boot_id", self_.boot).with("address", server_->address());
  watch_.start();
  watch_parent();
  spawn(io_.get_executor(), watch_binary(), "the watch over the worker's file");
  auto manage = [this]() -> asio::awaitable<void> { code_ = co_await manager_->run(); };
  spawn(io_.get_executor(), manage(), "the manager", [this] { io_.stop(); });
  io_.run();
  log::info("runner.stopped").with("exit_code", code_);
  ::_exit(code_);  // a thread that waits for a disk which hangs would never be joined; the parent ends what is below
}

}  // namespace

runner::Policy policy_of(const Settings& s) {
  runner::Policy out;
  out.lease.ttl = s.duration("lease_ttl_s");
  out.lease.renew_every = s.duration("lease_renew_interval_s");
  out.rollout = s.text("rollout") == "bluegreen" ? rollout::Mode::bluegreen : rollout::Mode::live;
  out.rollout_times.drain_within = s.duration("grace_timeout_s");
  out.capacity = static_cast<int>(s.integer("capacity_streams"));
  out.shard_size = static_cast<int>(std::min(s.integer("target_streams_per_shard"), s.integer("max_cameras_per_worker")));
  out.quorum_pct = static_cast<int>(s.integer("readiness_quorum_pct"));
  out.workers_max = static_cast<int>(s.integer("max_workers"));
  out.poll = s.duration("lease_retry_interval_s");
  out.stall = s.duration("stall_timeout_s");
  out.drain_batch = static_cast<int>(s.integer("drain_batch"));
  out.drain_interval = s.duration("drain_interval_s");
  return out;
}

Result<int> run_manager(const Arguments& arguments, const Settings& settings, RunnerOptions options) {
  ManagerProcess process(arguments, settings, std::move(options));
  return process.run();
}

}  // namespace weir::apps
