#include "cluster/cluster.hpp"

#include "common/api.hpp"
#include "common/files.hpp"
#include "common/logging.hpp"
#include "common/plane_config.hpp"
#include "common/print.hpp"
#include "common/signals.hpp"

#include "weir/base/log.hpp"
#include "weir/base/random.hpp"
#include "weir/base/spawn.hpp"
#include "weir/cluster/endpoints.hpp"
#include "weir/cluster/product_routes.hpp"
#include "weir/http_bus/http_bus.hpp"
#include "weir/http_plane/cluster_plane.hpp"
#include "weir/in_process/coordination.hpp"
#include "weir/net/server.hpp"
#include "weir/redis/coordination.hpp"
#include "weir/ws_detector/ws_link.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <unistd.h>

#include <csignal>

namespace weir::apps {

namespace asio = boost::asio;

namespace {

constexpr std::string_view kListen = "127.0.0.1:8087";
constexpr Duration kGoodbye = 1s;  // within which products that listen are told that this process stops
constexpr std::pair<std::string_view, std::string_view> kDefaults[] = {{"listen", kListen}};

// The control plane's bus, with a token that is fresh each time.
class OwnBus final : public EventBus {
 public:
  OwnBus(ClusterPlane& plane, std::unique_ptr<http_bus::HttpBus> bus) : plane_(plane), bus_(std::move(bus)) {}
  asio::awaitable<Result<std::vector<Confirmation>>> publish(std::vector<event::Event> events) override {
    CO_TRY(token, co_await plane_.token());
    bus_->set_token(std::move(token));
    co_return co_await bus_->publish(std::move(events));
  }
  asio::awaitable<Status> subscribe(Subscription subscription, std::function<bool(const DeliveredEvent&)> each) override {
    CO_TRY(token, co_await plane_.token());
    bus_->set_token(std::move(token));
    co_return co_await bus_->subscribe(std::move(subscription), std::move(each));
  }

 private:
  ClusterPlane& plane_;
  const std::unique_ptr<http_bus::HttpBus> bus_;
};

Result<std::vector<std::string>> workers_of(const Settings& s) {
  std::vector<std::string> out;
  std::string all = s.secret("detector_workers").reveal();
  for (size_t begin = 0; begin <= all.size();) {
    size_t end = std::min(all.find(',', begin), all.size());
    std::string one(trimmed(all.substr(begin, end - begin)));
    begin = end + 1;
    if (one.empty()) continue;
    if (!one.starts_with("ws://") && !one.starts_with("wss://"))
      return usage_error(fmt::format("detector_workers: {} does not begin with ws:// or wss://", redact_url(one)));
    if (std::ranges::find(out, one) != out.end())
      return usage_error(fmt::format("detector_workers names {} twice", redact_url(one)));
    out.push_back(std::move(one));
  }
  return out;
}

class ClusterProcess {
 public:
  explicit ClusterProcess(const Settings& settings) : settings_(settings) {}
  // `lifeline`: it ends when its standard input does.
  Result<int> run(const std::string& token_file, bool lifeline);

 private:
  Result<cluster::BackendSettings> backend_settings() const;
  Status open_plane(const std::string& token_file);
  void watch_lifeline();
  asio::awaitable<void> serve();
  void stop(std::string_view why);
  std::unique_ptr<Coordination> coordination();

  const Settings& settings_;
  RunnerId id_;
  asio::io_context io_{1};
  RealClock clock_;
  net::Metrics metrics_;
  std::optional<net::TokenKey> key_;
  std::unique_ptr<http_plane::HttpClusterPlane> plane_;
  std::unique_ptr<OwnBus> bus_;
  std::unique_ptr<ws_detector::WsLink> link_;
  std::unique_ptr<Coordination> coordination_;
  std::unique_ptr<cluster::Backend> backend_;
  net::Router router_;
  std::unique_ptr<net::HttpServer> server_;
  Signals signals_{io_};
  asio::posix::stream_descriptor lifeline_{io_};
  bool stopping_ = false, closed_ = false;
};

Status ClusterProcess::open_plane(const std::string& token_file) {
  if (settings_.text("control_plane_url").empty())
    return usage_error("a cluster needs a control plane, which keeps its lease and says what it shall do: give "
                       "--control-plane-url URL");
  TRY(config, plane_config(settings_, id_, token_file));
  TRY(plane, http_plane::HttpClusterPlane::create(io_, clock_, std::move(config)));
  plane_ = std::move(plane);
  TRY(bus, http_bus::HttpBus::create(io_, {.base_url = settings_.text("control_plane_url"),
                                           .ca_file = settings_.text("control_plane_ca_file")}));
  bus_ = std::make_unique<OwnBus>(*plane_, std::move(bus));
  ws_detector::Config link{.ca_file = settings_.text("detector_ca_file")};
  if (std::string path = settings_.text("detector_token_file"); !path.empty()) {
    TRY(token, read_file(path, 16 << 10));
    link.token = Secret(trimmed(token));
  }
  link_ = std::make_unique<ws_detector::WsLink>(io_, std::move(link));
  return ok();
}

// A process without Redis shares what it says with nobody, and needs nobody.
std::unique_ptr<Coordination> ClusterProcess::coordination() {
  std::string host = settings_.text("redis_host");
  if (host.empty()) return in_process::make_coordination(io_.get_executor());
  return redis::make_coordination(io_.get_executor(), {.host = host,
                                                       .port = static_cast<int>(settings_.integer("redis_port")),
                                                       .password = settings_.secret("redis_password")});
}

Result<cluster::BackendSettings> ClusterProcess::backend_settings() const {
  TRY(name, ClusterId::parse(settings_.text("cluster_name")));
  TRY(workers, workers_of(settings_));
  cluster::BackendSettings out{.owner = {id_, BootId::trusted(random_hex(16))}, .cluster = name,
                               .tenant = TenantId::trusted(settings_.text("cluster_tenant"))};
  out.lease.ttl = settings_.duration("cluster_lease_ttl_s");
  out.master.workers = std::move(workers);
  out.master.capacity = static_cast<int>(settings_.integer("detector_capacity"));
  if (out.master.workers.empty())
    log::warn("cluster.no_workers", "detector_workers names no worker: everything that is desired waits for one");
  return out;
}

void ClusterProcess::stop(std::string_view why) {
  if (std::exchange(stopping_, true)) return;
  log::info("cluster.stopping", "closes its connections and gives the lease back").with("why", why);
  backend_->stop();
  spawn(io_.get_executor(), server_->stop(kGoodbye), "the end of the routes", [this] { closed_ = true; });
}

// A product's answer to a session may wait for the master for longer than this process does.
asio::awaitable<void> ClusterProcess::serve() {
  co_await backend_->run();
  for (Instant until = clock_.now() + 2 * kGoodbye; !closed_ && clock_.now() < until;) co_await clock_.wait(20ms);
}

void ClusterProcess::watch_lifeline() {
  boost::system::error_code bad;
  lifeline_.assign(0, bad);
  if (bad) return;
  lifeline_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& cancelled) {
    if (!cancelled) stop("the program that started it is gone");
  });
}

Result<int> ClusterProcess::run(const std::string& token_file, bool lifeline) {
  std::signal(SIGPIPE, SIG_IGN);
  std::string listen = settings_.origin("listen") == "default" ? std::string(kListen) : settings_.text("listen");
  std::string own = settings_.text("cluster_process_id");
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  TRY(id, RunnerId::parse(own.empty() ? fmt::format("cluster-{}-{}", host, listen.substr(listen.rfind(':') + 1)) : own));
  id_ = id;
  TRY(chosen, backend_settings());
  TRY(made, make_private_folder(settings_.text("state_dir")));
  TRY(opened, open_plane(token_file));
  TRY(key, net::TokenKey::load_or_create(secret_file(settings_)));
  key_ = key;
  metrics_.add_process_metrics();
  coordination_ = coordination();
  cluster::BackendPorts ports{*plane_, *bus_, *link_, *coordination_, clock_};
  backend_ = std::make_unique<cluster::Backend>(io_, ports, metrics_, std::move(chosen));
  cluster::add_endpoints(router_, *backend_, metrics_);
  cluster::add_product_routes(router_, {*backend_, *plane_, *link_}, metrics_, clock_, *key_);
  server_ = std::make_unique<net::HttpServer>(io_, clock_, router_, net::ServerLimits{.connections_max = 1024});
  TRY(listening, server_->listen(listen));
  signals_.add({SIGTERM, SIGINT});
  signals_.hear([this](int signal) {
    if (stopping_) ::_exit(128 + signal);
    stop("a signal");
  });
  if (lifeline) watch_lifeline();
  print_line("listening on " + url_of(server_->address()));
  log::info("cluster.starting", "asks for the cluster's lease").with("address", server_->address())
      .with("process_id", id_).with("cluster", settings_.text("cluster_name"));
  spawn(io_.get_executor(), serve(), "the cluster's process", [this] { io_.stop(); });
  io_.run();
  log::info("cluster.stopped");
  ::_exit(0);  // what still waits for a worker must not keep this process
}

Result<int> run_cluster(const Arguments& arguments) {
  TRY(settings, arguments.settings());
  TRY(logging, configure_logging(settings));
  log::set_common("service", "cluster");
  if (settings.flag("detect_debug")) log::set_level(log::Level::debug);
  ClusterProcess process(settings);
  return process.run(arguments.text("token-file"), arguments.has("lifeline"));
}

}  // namespace

std::vector<Command> cluster_commands() {
  return {{"cluster",
           "Start a process of a detector cluster: one of them is the master and drives the detection workers",
           "weir cluster --control-plane-url http://10.0.0.2:8080 --detector-workers ws://gpu-1:8000,ws://gpu-2:8000\n"
           "weir cluster --control-plane-url http://127.0.0.1:8080 --cluster-name entrances --listen 127.0.0.1:0",
           "cluster",
           {{"token-file", "FILE", "The process's token for the control plane, instead of an API key"},
            {"lifeline", "", "End when standard input ends, with the process that started it"}},
           run_cluster,
           kDefaults}};
}

}  // namespace weir::apps
