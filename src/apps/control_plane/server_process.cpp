#include "server_process.hpp"

#include "common/api.hpp"
#include "common/files.hpp"
#include "common/print.hpp"

#include "weir/base/log.hpp"
#include "weir/model_disk/folder_disk.hpp"
#include "weir/posix/machine.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>

#include <unistd.h>

#include <cmath>
#include <csignal>

namespace weir::apps {

namespace asio = boost::asio;

namespace {

// How long closing the store may take beyond the grace, before the process ends without it.
constexpr Duration kCloseLimit = 5s;

control_plane::ControlPlaneSettings plane_settings(const Settings& s) {
  std::string loopback = s.text("loopback_cameras");
  return {.ttl_min = s.duration("lease_ttl_min_s"),
          .ttl_max = s.duration("lease_ttl_max_s"),
          .budget_capacity = static_cast<double>(s.integer("budget_capacity")),
          .budget_refill_per_min = s.number("budget_refill_per_min"),
          .create_places = s.flag("create_places"),
          .rules = {.loopback = loopback == "allow" || (loopback == "auto" && listens_on_loopback(s.text("listen")))},
          .retention = {.age = s.duration("event_retention_s"), .events_max = s.integer("event_retention_max")},
          .runner_live = s.duration("runner_live_s"),
          .token_ttl = s.duration("token_ttl_s"),
          .model_file_bytes_max = static_cast<std::uint64_t>(s.integer("model_file_bytes_max")),
          .model_files_url = s.text("model_files_url")};
}

std::string model_files_folder(const Settings& s) {
  std::string given = s.text("model_files_dir");
  return given.empty() ? s.text("state_dir") + "/models" : given;
}

net::ServerLimits server_limits(const Settings& s, size_t descriptors) {
  auto wanted = static_cast<size_t>(s.integer("http_connections_max"));
  size_t allowed = connections_allowed(wanted, descriptors);
  if (allowed < wanted)
    log::warn("http.fewer_connections", "the descriptor limit allows fewer connections than http_connections_max")
        .with("connections_max", allowed)
        .with("descriptors", descriptors);
  return {.body_bytes_max = static_cast<size_t>(s.integer("http_body_bytes_max")),
          .connections_max = allowed,
          .read_timeout = s.duration("http_read_timeout_s"),
          .idle_timeout = s.duration("http_idle_timeout_s"),
          .write_timeout = s.duration("http_write_timeout_s")};
}

void end_stuck_process(int) {
  constexpr std::string_view said = "weir: the shutdown took longer than its grace; ended without it\n";
  [[maybe_unused]] ssize_t ignored = ::write(2, said.data(), said.size());
  ::_exit(1);
}

}  // namespace

size_t connections_allowed(size_t wanted, size_t descriptors) {
  // Descriptors for the store, the log, what `weir up` starts, and the connections that are refused because there are
  // too many.
  constexpr size_t kReserve = 256;
  return std::min(wanted, std::max(descriptors / 2, descriptors - std::min(descriptors, kReserve)));
}

ServerProcess::ServerProcess(const Arguments& arguments, Settings settings)
    : settings_(std::move(settings)), watch_(io_, arguments, settings_) {}

Status ServerProcess::use_certificate() {
  std::string certificate_file = settings_.text("tls_certificate_file");
  if (certificate_file.empty()) return ok();
  TRY(opened, CertificateWatch::open(io_, metrics_, std::move(certificate_file), settings_.text("tls_key_file")));
  certificate_ = std::move(opened);
  return ok();
}

std::string ServerProcess::url() const { return url_of(server_->address(), certificate_ ? "https" : "http"); }

Status ServerProcess::start(const Secret& database_url) {
  std::signal(SIGPIPE, SIG_IGN);
  size_t descriptors = posix::raise_descriptor_limit();
  TRY(key, net::TokenKey::load_or_create(secret_file(settings_)));
  TRY(store, open_store(database_url, static_cast<int>(settings_.integer("database_pool_size")),
                        {.ttl_max = settings_.duration("lease_ttl_max_s"),
                         .runner_live = settings_.duration("runner_live_s")}));
  store_ = std::move(store);
  metrics_.add_process_metrics();
  model_disk_ = std::make_unique<model_disk::FolderDisk>(model_files_folder(settings_));
  plane_ = std::make_unique<control_plane::ControlPlane>(*store_.leases, *store_.catalog, *store_.events, *store_.keys,
                                                         *store_.pictures, *model_disk_, clock_, std::move(key),
                                                         metrics_, plane_settings(settings_));
  plane_->add_routes(router_);
  server_ = std::make_unique<net::HttpServer>(io_, clock_, router_, server_limits(settings_, descriptors),
                                              [this](const net::Finished& finished) { plane_->observe(finished); });
  if (certificate_) certificate_->start([this](auto identity) { server_->use(std::move(identity)); });
  TRY(listening, server_->listen(settings_.text("listen")));
  // From here on the control plane counts as running: a signal that comes before `run` waits until then. The signals
  // are not kept sooner, because one that comes while the process waits for the store has to end it.
  signals_.add({SIGTERM, SIGINT, SIGHUP});
  log::info("control_plane.started", certificate_ ? "answering HTTP over TLS" : "answering HTTP")
      .with("address", server_->address())
      .with("store", store_.kind)
      .with("database", store_.shown)
      .with("pid", static_cast<std::int64_t>(::getpid()));
  return ok();
}

int ServerProcess::run(std::optional<Duration> limit) {
  ticking_ = true;
  asio::co_spawn(io_, plane_->ticker(),
                 asio::bind_cancellation_slot(ticker_stop_.slot(), [this](const std::exception_ptr& failed) {
                   ticking_ = false;
                   // Without lease time no lease can be granted: the process ends, so that it is started again.
                   if (failed)
                     log::error("control_plane.ticker_failed",
                                "the ticker ended by a mistake: lease time stands still");
                   if (!stopping_) fail("the ticker ended");
                 }));
  if (companion_.run)
    asio::co_spawn(io_, companion_.run(), [this](const std::exception_ptr& failed) {
      if (!failed) return;
      log::error("companion.failed", "the work beside the control plane ended by an exception");
      fail("the work beside the control plane has failed");
    });
  signals_.hear([this](int signal) { hear(signal); });
  watch_.start();
  if (limit) {
    limit_.expires_after(*limit);
    limit_.async_wait([this](const boost::system::error_code& cancelled) {
      if (!cancelled) begin_stop("its time is up");
    });
  }
  io_.run();
  server_.reset();
  plane_.reset();
  store_ = {};
  if (code_ == 0) log::info("control_plane.stopped", "stopped cleanly");
  else log::error("control_plane.stopped", "stopped after a failure").with("exit_code", code_);
  ::alarm(0);
  return code_;
}

void ServerProcess::hear(int signal) {
  if (signal == SIGHUP && !terminal_gone()) {
    if (certificate_) certificate_->look(true);
    return watch_.read_again();
  }
  if (stopping_ && signal != SIGHUP) ::_exit(128 + signal);
  begin_stop(signal == SIGINT ? "interrupted" : signal == SIGHUP ? "its terminal was closed" : "terminated");
}

// The supervisor sees by the exit code that the control plane is to be started again.
void ServerProcess::fail(std::string_view why) {
  code_ = 1;
  begin_stop(why);
}

void ServerProcess::begin_stop(std::string_view why) {
  if (stopping_) return;
  stopping_ = true;
  log::info("control_plane.stopping", std::string(why)).with("connections", server_->connections());
  // The alarm also covers what happens after the loop has ended: joining the store's threads.
  std::signal(SIGALRM, end_stuck_process);
  ::alarm(static_cast<unsigned>(std::ceil(seconds(settings_.duration("shutdown_grace_s") + companion_.grace + kCloseLimit))));
  asio::co_spawn(io_, stop(), [this](const std::exception_ptr& failed) {
    if (failed) log::error("control_plane.stop_failed", "the listener could not be closed");
    signals_.stop();
    limit_.cancel();
    watch_.stop();
    if (certificate_) certificate_->stop();
  });
}

asio::awaitable<void> ServerProcess::stop() {
  if (companion_.stop) co_await companion_.stop();
  co_await server_->stop(settings_.duration("shutdown_grace_s"));
  if (ticking_) ticker_stop_.emit(asio::cancellation_type::all);
}

}  // namespace weir::apps
