// ServerProcess: a control plane from its settings to its clean end.
//
// `start` opens the store, takes the address and keeps the signals that come from then on; `run` serves until SIGTERM,
// SIGINT or the given time is up, then stops in the reverse order of the data's way: the companion first, then no new
// requests, running ones finish within the grace, the ticker ends, the store closes. A second signal ends at once, and
// so does a shutdown that hangs. SIGHUP, and a change of the settings file, bring the log level into effect;
// SIGHUP, and a change of its files, another certificate. Main thread only.
#pragma once

#include "certificate_watch.hpp"
#include "common/command.hpp"
#include "common/settings_watch.hpp"
#include "common/signals.hpp"
#include "store/open_store.hpp"

#include "weir/base/clock.hpp"
#include "weir/control_plane/control_plane.hpp"
#include "weir/net/metrics.hpp"
#include "weir/net/server.hpp"

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>

namespace weir::apps {

// What lives beside the control plane in its process: runs while it serves, and is stopped before it.
struct Companion {
  std::function<boost::asio::awaitable<void>()> run;
  std::function<boost::asio::awaitable<void>()> stop;
  Duration grace{};  // how long stopping may take
};

// As many connections as are wanted and as the limit of open descriptors leaves room for.
size_t connections_allowed(size_t wanted, size_t descriptors);

class ServerProcess {
 public:
  ServerProcess(const Arguments& arguments, Settings settings);

  boost::asio::io_context& io() { return io_; }
  Clock& clock() { return clock_; }
  OpenStore& store() { return store_; }  // after `start`
  control_plane::ControlPlane& plane() { return *plane_; }  // after `start`
  // Before `run`.
  void attach(Companion companion) { companion_ = std::move(companion); }

  // Before `start`: TLS is spoken where the settings name a certificate.
  Status use_certificate();
  Status start(const Secret& database_url);
  std::string url() const;  // under which this machine reaches it
  // Serves until it is told to stop, or for `limit`. 0 is a clean end; 1 that the ticker or the companion failed.
  int run(std::optional<Duration> limit);

 private:
  void hear(int signal);
  void begin_stop(std::string_view why);
  void fail(std::string_view why);
  boost::asio::awaitable<void> stop();

  // Constant after construction.
  const Settings settings_;
  // In the order of construction; destroyed in reverse.
  boost::asio::io_context io_{1};
  RealClock clock_;
  net::Metrics metrics_;
  OpenStore store_;
  std::unique_ptr<ModelDisk> model_disk_;
  std::unique_ptr<control_plane::ControlPlane> plane_;
  net::Router router_;
  std::unique_ptr<net::HttpServer> server_;
  std::unique_ptr<CertificateWatch> certificate_;  // null: requests come in the clear
  Signals signals_{io_};
  SettingsWatch watch_;
  boost::asio::steady_timer limit_{io_};
  boost::asio::cancellation_signal ticker_stop_;
  Companion companion_;
  bool ticking_ = false;
  bool stopping_ = false;
  int code_ = 0;
};

}  // namespace weir::apps
