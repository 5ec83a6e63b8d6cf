#include "orchestrator.hpp"

#include "common/api.hpp"
#include "common/files.hpp"
#include "common/logging.hpp"
#include "common/plane_config.hpp"
#include "common/print.hpp"
#include "common/signals.hpp"
#include "common/yaml.hpp"
#include "own_plane.hpp"
#include "worker_token.hpp"

#include "weir/base/log.hpp"
#include "weir/base/spawn.hpp"
#include "weir/http_plane/stream_plane.hpp"
#include "weir/mediamtx/control_api.hpp"
#include "weir/net/server.hpp"
#include "weir/orchestrator/endpoints.hpp"
#include "weir/posix/boot_file.hpp"
#include "weir/posix/keeper_host.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

namespace weir::apps {

namespace asio = boost::asio;

namespace {

constexpr std::string_view kListen = "127.0.0.1:8086", kRtspBase = "rtsp://127.0.0.1:8554";
constexpr std::pair<std::string_view, std::string_view> kDefaults[] = {{"listen", kListen},
                                                                       {"mediamtx_rtsp_base", kRtspBase}};
constexpr Duration kServerGrace = 2s;

// Settings whose default is another here than elsewhere.
std::string listen_of(const Settings& s) {
  std::string listen = s.text("listen");
  if (s.origin("listen") == "default") listen = kListen;
  return listen;
}
Secret rtsp_base_of(const Settings& s) {
  std::string base = s.secret("mediamtx_rtsp_base").reveal();
  if (s.origin("mediamtx_rtsp_base") == "default") base = kRtspBase;
  return Secret(std::move(base));
}

Status read_hook_token(const Settings& s, Secret& token) {
  std::string path = s.text("hook_token_file");
  if (path.empty()) {
    if (listens_on_loopback(listen_of(s))) return ok();
    return usage_error(fmt::format("hooks that come from other hosts need a token: write one into a file and give "
                                   "--hook-token-file FILE here and WEIR_HOOK_TOKEN_FILE to weir-hook, or listen on a "
                                   "loopback address instead of {}", listen_of(s)));
  }
  TRY(text, read_file(path, 4096));
  token = Secret(trimmed(text));
  const std::string& said = token.reveal();
  bool plain = std::ranges::all_of(said, [](char c) { return c > ' ' && c < 0x7f; });  // weir-hook sends no other
  if (said.size() < 16 || !plain)
    return usage_error(fmt::format("{}: a hook token is one line of at least 16 printable characters without spaces", path));
  return ok();
}

Result<std::map<stream::StreamId, stream::Wishes>> streams_file(const Settings& s) {
  std::string path = s.text("streams_file");
  if (path.empty()) return std::map<stream::StreamId, stream::Wishes>();
  TRY(text, read_file(path, 8 << 20));
  TRY(document, read_yaml(text, path));
  TRY(streams, stream::read_streams_file(document));
  for (const auto& [id, wishes] : streams)
    if (!wishes.problem.empty()) log::warn("streams_file.wrong", wishes.problem).with("streamId", id).with("file", path);
  return std::move(streams);
}

std::string own_name(const Settings& s) {
  if (std::string id = s.text("orchestrator_id"); !id.empty()) return id;
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return fmt::format("orchestrator-{}", host);
}

lease::Home home_of(const Settings& s) {
  return {TenantId::trusted(s.text("orchestrator_tenant")), SiteId::trusted(s.text("orchestrator_site"))};
}

stream::Policy policy_of(const Settings& s) {
  stream::Policy policy;
  policy.disconnect_grace = s.duration("disconnect_grace_s");
  policy.outage_grace = s.duration("outage_grace_s");
  for (restart::WindowPolicy* window : {&policy.worker, &policy.forwarder}) {
    window->restarts_max = static_cast<int>(s.integer("restart_max_per_10_min"));
    window->cooldown = s.duration("restart_cooldown_seconds");
  }
  return policy;
}

class OrchestratorProcess {
 public:
  explicit OrchestratorProcess(const Settings& settings) : settings_(settings) {}
  Result<int> run(const std::string& token_file);

 private:
  Status open_plane(const std::string& token_file);
  Result<orchestrator::OrchestratorSettings> orchestrator_settings();
  Status listen();
  std::string token_path() const { return folder_ + "/worker.token"; }
  void hear(int signal);
  asio::awaitable<void> wind_down();

  const Settings& settings_;
  RunnerId id_;
  std::string folder_;
  asio::io_context io_{1};
  RealClock clock_;
  net::Metrics metrics_;
  std::optional<posix::BootFile> boot_;
  std::unique_ptr<OwnPlane> own_;
  std::unique_ptr<http_plane::HttpStreamPlane> remote_;
  std::unique_ptr<posix::KeeperHost> children_;
  std::unique_ptr<mediamtx::ControlApi> media_;
  std::unique_ptr<orchestrator::Orchestrator> orchestrator_;
  std::unique_ptr<orchestrator::Endpoints> endpoints_;
  net::Router router_;
  std::unique_ptr<net::HttpServer> server_;
  Signals signals_{io_};
  bool stopping_ = false;
};

Status OrchestratorProcess::open_plane(const std::string& token_file) {
  std::string url = settings_.text("control_plane_url");
  if (url.empty()) {
    TRY(own, OwnPlane::open(settings_.text("state_dir"), id_, clock_));
    own_ = std::move(own);
    log::info("orchestrator.alone", "no control_plane_url: leases are kept in this orchestrator's own store; two "
                                    "orchestrators on two hosts need a control plane");
    return ok();
  }
  TRY(config, plane_config(settings_, id_, token_file));
  TRY(remote, http_plane::HttpStreamPlane::create(io_, clock_, std::move(config)));
  remote_ = std::move(remote);
  return ok();
}

Result<orchestrator::OrchestratorSettings> OrchestratorProcess::orchestrator_settings() {
  orchestrator::OrchestratorSettings out;
  out.owner = {id_, boot_->boot()};
  out.home = home_of(settings_);
  out.lease.ttl = settings_.duration("stream_lease_ttl_s");
  out.policy = policy_of(settings_);
  out.look_every = settings_.duration("look_interval_s");
  out.destination_in_query = settings_.flag("destination_from_query");
  TRY(file, streams_file(settings_));
  out.file = std::move(file);
  TRY(command, orchestrator::read_command(settings_.text("worker_command")));
  out.programs = {.worker = posix::helper_path("worker"),
                  .forwarder = posix::helper_path("egress"),
                  .worker_command = std::move(command),
                  .rtsp_base = rtsp_base_of(settings_),
                  .folder = folder_,
                  .log_level = settings_.text("log_level")};
  // In the orchestrator's own store nobody could read them.
  if (remote_)
    out.programs.worker_settings = {{"control_plane_url", settings_.text("control_plane_url")},
                                    {"control_plane_ca_file", settings_.text("control_plane_ca_file")},
                                    {"worker_token_file", token_path()},
                                    {"stream_owner", id_.str()}};
  return out;
}

Status OrchestratorProcess::listen() {
  orchestrator::EndpointSettings served;
  TRY(read, read_hook_token(settings_, served.hook_token));
  TRY(key, net::TokenKey::load_or_create(secret_file(settings_)));
  served.key = key;
  if (own_) served.records = &own_->streams();
  served.home = home_of(settings_);
  endpoints_ = std::make_unique<orchestrator::Endpoints>(*orchestrator_, metrics_, clock_, std::move(served));
  endpoints_->add_to(router_);
  server_ = std::make_unique<net::HttpServer>(io_, clock_, router_,
                                              net::ServerLimits{.body_bytes_max = 64 << 10, .connections_max = 4096});
  return server_->listen(listen_of(settings_));
}

// SIGTERM leaves the streams to the next start: an upgrade interrupts nobody. Ctrl-C is somebody who wants an end.
void OrchestratorProcess::hear(int signal) {
  if (std::exchange(stopping_, true)) ::_exit(128 + signal);
  bool by_hand = signal == SIGINT && ::isatty(STDIN_FILENO) == 1;
  log::info("orchestrator.stopping", by_hand ? "winds its streams down" : "leaves its streams to its next start");
  if (by_hand) spawn(io_.get_executor(), wind_down(), "winding down");
  else orchestrator_->stop();
}

asio::awaitable<void> OrchestratorProcess::wind_down() {
  co_await orchestrator_->stop_streams(20s);
  orchestrator_->stop();
}

Result<int> OrchestratorProcess::run(const std::string& token_file) {
  std::signal(SIGPIPE, SIG_IGN);
  TRY(id, RunnerId::parse(own_name(settings_)));
  id_ = id;
  std::string state_dir = settings_.text("state_dir");
  TRY(made, make_private_folder(state_dir));
  folder_ = std::filesystem::absolute(state_dir).lexically_normal().string() + "/streams";
  TRY(made_too, make_private_folder(folder_));
  TRY(boot, posix::BootFile::take(folder_ + "/boot"));
  boot_.emplace(std::move(boot));
  TRY(plane, open_plane(token_file));
  // A record need not survive the kernel: after a reboot there is nobody to be found. Waiting for the disk would hold up
  // hooks by 10 ms a start.
  TRY(children, posix::KeeperHost::create(io_, {.folder = folder_, .boot = boot_->boot(), .sync_records = false}));
  children_ = std::move(children);
  TRY(media, mediamtx::ControlApi::create(io_, {.url = settings_.secret("mediamtx_api")}));
  media_ = std::move(media);
  metrics_.add_process_metrics();
  TRY(chosen, orchestrator_settings());
  StreamPlane& reached = own_ ? static_cast<StreamPlane&>(*own_) : *remote_;
  orchestrator_ = std::make_unique<orchestrator::Orchestrator>(
      io_, orchestrator::OrchestratorPorts{reached, *children_, *media_, clock_}, metrics_, std::move(chosen));
  TRY(listening, listen());
  signals_.add({SIGTERM, SIGINT});
  signals_.hear([this](int signal) { hear(signal); });
  print_line("listening on " + url_of(server_->address()));
  log::info("orchestrator.starting", "answers MediaMTX's hooks")
      .with("address", server_->address()).with("orchestrator_id", id_).with("boot_id", boot_->boot())
      .with("continued", boot_->continued());
  if (own_) spawn(io_.get_executor(), own_->run(), "the orchestrator's own store");
  else spawn(io_.get_executor(), keep_worker_token(*remote_, clock_, boot_->boot(), token_path()), "the workers' token");
  spawn(io_.get_executor(), orchestrator_->run(), "the orchestrator", [this] { io_.stop(); });
  io_.run();
  log::info("orchestrator.stopped");
  ::_exit(0);  // what still waits for a child or a store must not keep this process
}

Result<int> orchestrate(const Arguments& arguments) {
  TRY(settings, arguments.settings());
  TRY(logging, configure_logging(settings));
  log::set_common("service", "orchestrator");
  OrchestratorProcess process(settings);
  return process.run(arguments.text("token-file"));
}

}  // namespace

std::vector<Command> orchestrator_commands() {
  return {{"orchestrator",
           "Start an orchestrator: one worker, and a forwarder, for every stream published to MediaMTX",
           "weir orchestrator --mediamtx-api http://127.0.0.1:9997 --mediamtx-rtsp-base rtsp://127.0.0.1:8554\n"
           "weir orchestrator --streams-file streams.yaml --control-plane-url http://10.0.0.2:8080 --state-dir /var/lib/weir",
           "orchestrator",
           {{"token-file", "FILE", "The orchestrator's token for the control plane, instead of an API key"}},
           orchestrate,
           kDefaults}};
}

}  // namespace weir::apps
