#include "runner_parent.hpp"

#include "common/api.hpp"
#include "common/command.hpp"
#include "common/files.hpp"
#include "common/print.hpp"
#include "common/signals.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/log.hpp"
#include "weir/base/spawn.hpp"
#include "weir/http_plane/will_office.hpp"
#include "weir/last_will/last_will.hpp"
#include "weir/posix/child_process.hpp"
#include "weir/posix/household.hpp"
#include "weir/posix/machine.hpp"
#include "weir/posix/run_lock.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <sstream>

namespace weir::apps {

namespace asio = boost::asio;

namespace {

std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string all((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::string> words;
  std::istringstream rest(all);
  for (std::string word; std::getline(rest, word, '\0');) words.push_back(word);
  if (!words.empty()) words.erase(words.begin());
  return words;
}

// The last will, wired to this process's signals and lifeline.
class Parent {
 public:
  Parent(const Settings& settings, const RunnerOptions& options, posix::RunLock lock)
      : options_(options),
        lock_(std::move(lock)),
        will_(clock_, host_, household_, lock_, [this](const std::string& urls) { return office_at(urls); },
              will_settings(settings)) {}

  Result<int> run() {
    auto run = [this]() -> asio::awaitable<void> { code_ = co_await will_.run(); };
    spawn(io_.get_executor(), run(), "the last will", [this] { io_.stop(); });
    io_.run();
    if (!code_) return std::move(code_).error();
    std::fflush(stdout);
    ::_exit(*code_);  // a lookup of a name that nobody answers would be waited for
  }

 private:
  last_will::Settings will_settings(const Settings& settings) {
    last_will::Settings out{.runner = options_.runner,
                            .manager = {.path = posix::self_path(), .arguments = own_arguments()},
                            .control_plane = options_.control_plane,
                            .ttl = settings.duration("lease_ttl_s")};
    out.manager.arguments.push_back("--manager");
    out.started = [this] { watch(); };
    out.listening = [](const std::string& address) { print_line("listening on " + address); };
    return out;
  }

  std::unique_ptr<WillOffice> office_at(const std::string& urls) {
    auto office = http_plane::HttpWillOffice::create(io_, urls, options_.ca_file);
    return office ? *std::move(office) : nullptr;
  }

  void watch() {
    signals_.add({SIGTERM, SIGINT, SIGHUP});
    signals_.hear([this](int signal) {
      will_.signal(signal == SIGINT || (signal == SIGHUP && terminal_gone()) ? SIGTERM : signal);
    });
    boost::system::error_code bad;
    if (options_.lifeline) lifeline_.assign(0, bad);
    if (!lifeline_.is_open()) return;
    lifeline_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& cancelled) {
      if (!cancelled && will_.abandon()) ::_exit(kExitParentGone);
    });
  }

  const RunnerOptions options_;
  asio::io_context io_{1};
  RealClock clock_;
  posix::RunLock lock_;
  posix::PosixHost host_{io_};
  posix::PosixHousehold household_;
  Signals signals_{io_};
  asio::posix::stream_descriptor lifeline_{io_};
  last_will::LastWill will_;
  Result<int> code_ = 1;
};

}  // namespace

Result<RunnerOptions> runner_options(const Settings& settings, const std::string& token_file) {
  RunnerOptions out;
  std::string name = settings.text("runner_id");
  if (name.empty()) {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    name = host;
  }
  TRY(id, RunnerId::parse(name));
  out.runner = std::move(id);
  std::string state_dir = settings.text("state_dir");
  out.folder = state_dir + "/runner";
  TRY(made, make_private_folder(out.folder));
  out.control_plane = settings.text("control_plane_url");
  out.ca_file = settings.text("control_plane_ca_file");
  if (out.control_plane.empty()) out.control_plane = usual_url(settings);
  if (out.control_plane.empty()) {
    auto found = read_file(endpoint_file(state_dir), 4096);
    if (!found) return usage_error("--control-plane-url or WEIR_URL is needed: no `weir up` runs in " + state_dir);
    out.control_plane = trimmed(*found);
  }
  out.api_key = settings.secret("api_key");
  if (!token_file.empty()) {
    TRY(token, read_file(token_file, 65536));
    out.token = Secret(trimmed(token));
    out.token_file = token_file;
  }
  return out;
}

// The workers of a runner that was killed need a moment to notice that: so the lock is tried again.
Result<posix::RunLock> take_lock(const std::string& path) {
  constexpr int kTries = 60;
  for (int tries = 1;; ++tries) {
    auto lock = posix::RunLock::take(path);
    if (lock || lock.error().reason != "already_running" || tries == kTries) return lock;
    if (tries == 1) log::info("runner.waiting", "a runner, or a worker of one, still runs in this folder");
    ::usleep(50'000);
  }
}

Result<int> run_parent(const Settings& settings, const RunnerOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  posix::raise_descriptor_limit();
  TRY(lock, take_lock(settings.text("state_dir") + "/runner.lock"));
  Parent parent(settings, options, std::move(lock));
  return parent.run();
}

}  // namespace weir::apps
