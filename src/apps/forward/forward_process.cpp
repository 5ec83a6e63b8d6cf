#include "forward_process.hpp"

#include "common/print.hpp"

#include "weir/base/json.hpp"
#include "weir/base/log.hpp"

#include <unistd.h>

#include <csignal>
#include <thread>

namespace weir::apps {

namespace asio = boost::asio;

namespace {
constexpr Duration kStopMax = 4s;  // of the five that a supervisor allows

std::optional<Instant> valid_until(const Settings& s) {
  std::int64_t until = s.integer("lease_valid_until_us");
  return until == 0 ? std::nullopt : std::optional(Instant(Duration(until)));
}
}  // namespace

ForwardProcess::ForwardProcess(const Settings& settings, ForwardJob job)
    : settings_(settings),
      job_(std::move(job)),
      report_(metrics_, job_.identity, job_.voice),
      right_(settings.integer("lease_version"), valid_until(settings)),
      forwarder_(job_.ends(right_, metrics_), job_.policy, right_, report_),
      socket_(io_, right_, [this] {
        watch_deadline();
        forwarder_.look_at_right();
      }) {}

Status ForwardProcess::start() {
  std::signal(SIGPIPE, SIG_IGN);
  signals_.add({SIGTERM, SIGINT});
  signals_.hear([this](int signal) { hear(signal); });
  hold_signals(SIG_UNBLOCK);
  if (std::string path = settings_.text("lease_socket"); !path.empty()) {
    TRY(listening, socket_.listen(path));
  }
  router_.add(net::Method::get, "/healthz", [this](net::Request&) -> asio::awaitable<net::Response> {
    egress::Report::Standing now = report_.standing();
    json::value problem = nullptr;
    if (now.failed != forward::Kind::none) problem = forward::row_of(now.failed).advice;
    co_return net::Response::json({{"status", "ok"}, {"flows", now.flows}, {"problem", std::move(problem)}});
  });
  router_.add(net::Method::get, "/metrics", [this](net::Request&) -> asio::awaitable<net::Response> {
    co_return net::Response::text(metrics_.text(), 200, "text/plain; version=0.0.4; charset=utf-8");
  });
  auto event = [this](std::string_view name) { return fmt::format("{}.{}", job_.voice.events, name); };
  Status served = server_.listen_from("127.0.0.1", static_cast<int>(settings_.integer(job_.port_setting)));
  if (!served) served = server_.listen_from("127.0.0.1", 0);
  if (!served) log::warn(event("no_metrics"), served.error().message);  // a stream is worth more than its numbers
  if (served) socket_.tell_control("http://" + server_.address());
  print_line(json::to_text(json::object{{"control", "http://" + server_.address()}, {"pid", ::getpid()}}));
  log::info(event("starting"), fmt::format("{} starts", job_.voice.self))
      .with("metrics", served ? "http://" + server_.address() + "/metrics" : "")
      .with("graceSeconds", settings_.integer("input_not_ready_grace_seconds"))
      .with("retryMaxAttempts", settings_.integer("retry_max_attempts"))
      .with("version", right_.version());
  return ok();
}

void ForwardProcess::hear(int) {
  if (std::exchange(stopped_, true)) return;
  forwarder_.stop();
  // A name lookup cannot be interrupted; the process ends all the same.
  stopping_.expires_after(kStopMax);
  stopping_.async_wait([this](const boost::system::error_code& cancelled) {
    if (!cancelled) finish({forward::kExitClean, "stopped, though a call hung"});
  });
}

// The timer knows nothing of a machine that sleeps: it looks once a second, too.
void ForwardProcess::watch_deadline() {
  auto ends = right_.ends();
  if (!ends) return;
  Instant now = boot_now();
  if (now >= ends->valid_until) forwarder_.look_at_right();
  if (now >= ends->keep_until) return;
  Instant next = now < ends->valid_until ? ends->valid_until : ends->keep_until;
  deadline_.expires_after(std::min(next - now, Duration(1s)));
  deadline_.async_wait([this](const boost::system::error_code& cancelled) {
    if (!cancelled) watch_deadline();
  });
}

void ForwardProcess::finish(forward::End end) {
  if (end.code == forward::kExitTransient && end.reason == to_string(forward::Kind::deadline))
    end.code = job_.exit_at_deadline;
  report_.exit(end, report_.last_failure());
  std::fflush(stdout);
  forwarder_.abandon();
  if (std::string path = settings_.text("lease_socket"); !path.empty()) ::unlink(path.c_str());
  // A thread may hang in a name lookup, and what it uses must not be destroyed under it.
  ::_exit(end.code);
}

void ForwardProcess::run() {
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

}  // namespace weir::apps
