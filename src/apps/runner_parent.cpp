#include "runner_parent.hpp"

#include "api.hpp"
#include "command.hpp"
#include "files.hpp"
#include "print.hpp"
#include "signals.hpp"

#include "weir/base/clock.hpp"
#include "weir/base/json.hpp"
#include "weir/base/log.hpp"
#include "weir/net/client.hpp"
#include "weir/posix/child_process.hpp"
#include "weir/posix/machine.hpp"
#include "weir/posix/run_lock.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>
#include <sstream>

namespace weir::apps {

namespace asio = boost::asio;
using posix::Testament;

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

std::string text_in(const json::value& v, std::string_view name) {
  const json::value* found = v.is_object() ? v.get_object().if_contains(name) : nullptr;
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
}

// Those of this process, or nothing where that cannot be known. One that ended is among them until it is waited for.
std::optional<std::vector<int>> children() {
  std::ifstream file(fmt::format("/proc/self/task/{}/children", ::getpid()));
  if (!file) return std::nullopt;
  return std::vector<int>(std::istream_iterator<int>(file), {});
}

class Parent {
 public:
  Parent(const Settings& settings, const RunnerOptions& options, posix::RunLock lock)
      : options_(options), ttl_(settings.duration("lease_ttl_s")), lock_(std::move(lock)) {}

  Result<int> run() {
    if (lock_.left_behind()) {
      log::info("runner.will_found", "the runner before this one died here; its leases are released first");
      if (!send_will_now(*lock_.left_behind())) unsent_ = lock_.left_behind();
    }
    foreign_ = children().value_or(std::vector<int>());
    Program program{.path = posix::self_path(), .arguments = own_arguments()};
    program.arguments.push_back("--manager");
    TRY(manager, host_.start(program));
    manager_ = std::move(manager);
    signals_.add({SIGTERM, SIGINT, SIGHUP});
    signals_.hear([this](int signal) {
      manager_->signal(signal == SIGINT || (signal == SIGHUP && terminal_gone()) ? SIGTERM : signal);
    });
    if (options_.lifeline) watch_lifeline();
    asio::co_spawn(io_, listen(), asio::detached);
    asio::co_spawn(io_, wait_for_end(), asio::detached);
    io_.run();
    std::fflush(stdout);
    ::_exit(code_);  // a lookup of a name that nobody answers would be waited for
  }

 private:
  // Whoever started this process is gone, and the control plane with it: nobody is there to hear the will. It stays in
  // the lock for the next start.
  void watch_lifeline() {
    boost::system::error_code bad;
    lifeline_.assign(0, bad);
    if (bad) return;
    lifeline_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& cancelled) {
      if (cancelled) return;
      kill_everything_below();
      ::_exit(kExitParentGone);
    });
  }

  // The manager says its boot and will before it holds anything.
  asio::awaitable<void> listen() {
    for (;;) {
      auto line = co_await manager_->read_line();
      if (!line) co_return;
      auto said = json::parse_text(*line);
      if (!said) continue;
      if (std::string address = text_in(*said, "listening"); !address.empty()) print_line("listening on " + address);
      if (std::string address = text_in(*said, "control_plane"); !address.empty()) control_plane_ = address;
      Testament testament{options_.runner, BootId::trusted(text_in(*said, "boot_id")), Secret(text_in(*said, "will"))};
      if (testament.boot.empty() || testament.will.empty()) continue;
      testament_ = testament;
      // The control plane has answered the manager: now it can hear the will that it did not at the start.
      if (auto older = std::exchange(unsent_, {})) asio::co_spawn(io_, send_will(*older, ttl_), asio::detached);
      if (auto kept = lock_.write(testament); !kept) log::warn("runner.lock", kept.error().message);
    }
  }

  asio::awaitable<void> wait_for_end() {
    int code = co_await manager_->wait();
    code_ = code >= 128 ? 1 : code;
    if (code != 0) log::error("runner.manager_ended", "the manager ended").with("exit_code", code);
    signals_.stop();
    if (lifeline_.is_open()) lifeline_.cancel();
    if (!kill_everything_below()) {
      log::error("runner.stuck", "a child cannot be ended: its leases are left to expire");
    } else if (testament_) {
      bool sent = co_await send_will(*testament_, ttl_);
      if (sent) forget_testament();
    }
    io_.stop();
  }

  // Workers whose manager died are children of this process now, and theirs in turn. Whoever was a child before the
  // manager was is the shell's that became this program: the reader of its log, or something else that runs beside it.
  // (What such a one leaves behind when it ends is not told from a worker's, and is ended.)
  bool kill_everything_below() const {
    Instant until = boot_now() + 5s;
    for (;;) {
      auto own = children();
      if (own) std::erase_if(*own, [&](int pid) { return std::ranges::find(foreign_, pid) != foreign_.end(); });
      for (int pid : own.value_or(std::vector<int>())) ::kill(pid, SIGKILL);
      int ended = ::waitpid(-1, nullptr, WNOHANG);
      if (ended < 0 && errno == ECHILD) return true;
      if (ended > 0) continue;
      if (own && own->empty() && !foreign_.empty()) return true;
      if (boot_now() > until) return false;
      ::usleep(2000);
    }
  }

  asio::awaitable<bool> send_will(Testament testament, Duration limit) {
    json::object body{{"boot_id", testament.boot.str()}};
    std::string text = json::to_text(body);
    std::string target = fmt::format("/v1/runners/{}/release-all", percent_encode(testament.runner.str()));
    Instant until = clock_.now() + limit;
    auto client = net::HttpClient::create(io_, control_plane_, {.ca_file = options_.ca_file});
    if (!client) co_return false;
    auto addresses = 1 + std::ranges::count(control_plane_, ',');
    for (long refused = 0; clock_.now() < until;) {
      net::ClientRequest request{.method = net::Method::post, .target = target, .body = text, .timeout = 1s,
                                 .replayable = true};
      request.headers.emplace_back("Authorization", "Will " + testament.will.reveal());
      // Whoever else listens at one of the addresses says nothing about this will: then the next is asked.
      request.usable = [](const net::ClientResponse& said) { return said.status < 300; };
      auto answer = co_await client->send(std::move(request));
      bool done = answer && answer->status < 300;
      if (done) log::info("runner.will", "the last will was carried out").with("boot_id", testament.boot).with("answer", answer->body);
      // Refused at every address: this boot is unknown, so there is nothing to release.
      if (answer && !done && net::response_error(*answer).reason == "will_refused") ++refused;
      if (done || refused >= addresses) co_return true;
      co_await clock_.wait(200ms);
    }
    log::warn("runner.will_failed", "the control plane did not answer: the leases are left to expire");
    co_return false;
  }

  bool send_will_now(const Testament& testament) {
    bool sent = false;
    asio::co_spawn(io_, send_will(testament, 3s), [&](const std::exception_ptr&, bool done) {
      sent = done;
      io_.stop();
    });
    io_.run();
    io_.restart();
    if (sent) forget_testament();
    return sent;
  }
  void forget_testament() {
    if (auto cleared = lock_.clear(); !cleared) log::warn("runner.lock", cleared.error().message);
  }

  const RunnerOptions options_;
  std::string control_plane_ = options_.control_plane;
  const Duration ttl_;
  asio::io_context io_{1};
  RealClock clock_;
  posix::RunLock lock_;
  posix::PosixHost host_{io_};
  Signals signals_{io_};
  asio::posix::stream_descriptor lifeline_{io_};
  std::vector<int> foreign_;  // children that somebody else started, before this program was
  std::unique_ptr<Child> manager_;
  std::optional<Testament> testament_, unsent_;
  int code_ = 1;
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
  }
  return out;
}

// Of a runner that was killed, the workers need a moment to notice.
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
