#include "up.hpp"

#include "admin/budget_advice.hpp"
#include "admin/camera_import.hpp"
#include "admin/warnings.hpp"
#include "common/files.hpp"
#include "common/logging.hpp"
#include "common/print.hpp"
#include "common/terminal_table.hpp"
#include "control_plane/server_process.hpp"
#include "demo.hpp"
#include "own_command.hpp"
#include "runner/runner.hpp"
#include "screen.hpp"
#include "stream_demo.hpp"

#include "weir/base/log.hpp"
#include "weir/base/spawn.hpp"
#include "weir/net/token.hpp"
#include "weir/posix/child_process.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <thread>

namespace weir::apps {

namespace asio = boost::asio;
namespace fs = std::filesystem;

Secret embedded_store(const Settings& settings) { return Secret("sqlite:" + settings.text("state_dir") + "/weir.db"); }

namespace {

// How a person calls this program: "weir" where that is what the shell finds, else its full path.
std::string program_name() {
  std::error_code unknown;
  fs::path self = fs::read_symlink("/proc/self/exe", unknown);
  if (unknown) return "weir";
  const char* path = std::getenv("PATH");
  for (std::string_view rest = path == nullptr ? "" : path; !rest.empty();) {
    size_t end = rest.find(':');
    fs::path found = fs::path(rest.substr(0, end)) / "weir";
    if (fs::exists(found, unknown)) return fs::equivalent(found, self, unknown) ? "weir" : self.string();
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return self.string();
}

std::string shell_word(const std::string& text) {
  bool plain = !text.empty() && text.find_first_not_of(
                                    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                    "_-./:@%+=,") == std::string::npos;
  if (plain) return text;
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string welcome(const std::string& url, const std::string& state_dir) {
  std::string weir = shell_word(program_name());
  std::string where = "--state-dir " + shell_word(state_dir);
  return fmt::format(
      "\n"
      "Weir is up: the control plane answers at {url}\n"
      "  state   {state_dir}\n"
      "  token   {weir} token --role admin --sub me {where}\n"
      "\n"
      "Try, in another terminal:\n"
      "  {weir} events --follow 'detections.#' {where}\n"
      "  {weir} tenant add t-01 {where}\n"
      "  {weir} site add site-A --tenant t-01 {where}\n"
      "  {weir} camera add --tenant t-01 --site site-A --id cam-1 rtsp://10.0.0.7/stream1 {where}\n"
      "  {weir} camera list {where}\n"
      "  {weir} status {where}\n"
      "  curl -H \"Authorization: Bearer $({weir} token --role admin --sub me {where})\" {url}/v1/cameras\n"
      "\n"
      "Ctrl-C stops it.\n",
      fmt::arg("url", url), fmt::arg("state_dir", state_dir), fmt::arg("weir", weir), fmt::arg("where", where));
}

// `weir up --cameras`: asks the API as any client would, from a thread of its own because each request blocks.
class CameraLoading {
 public:
  CameraLoading(std::string url, Secret token, std::vector<CameraLine> lines, std::string file, TerminalTable& screen)
      : url_(std::move(url)),
        token_(std::move(token)),
        lines_(std::move(lines)),
        file_(std::move(file)),
        screen_(screen),
        thread_([this] { load(); }) {}
  ~CameraLoading() {
    stop_ = true;
    thread_.join();
  }
  CameraLoading(const CameraLoading&) = delete;

 private:
  void load() {
    auto api = Api::connect(url_, token_);
    if (!api) return screen_.say(harmless(api.error().message));
    auto counts = import_cameras(*api, lines_, {.create = true, .update = true}, [&](const Imported& one) {
      if (one.result == "failed")
        screen_.say(harmless(fmt::format("{}:{}: {}: {}", file_, one.line, one.camera, one.message)));
      for (const std::string& message : messages_of(one.warnings))
        screen_.say(harmless(fmt::format("warning: {}:{}: {}: {}", file_, one.line, one.camera, message)));
      return !stop_;
    });
    screen_.say(fmt::format("cameras from {}: {}", file_, counts_text(counts)));
    for (const std::string& warning : budget_warnings(*api, sites_in(lines_))) screen_.say(harmless("warning: " + warning));
  }

  // Constant after construction.
  const std::string url_;
  const Secret token_;
  const std::vector<CameraLine> lines_;
  const std::string file_;
  TerminalTable& screen_;
  // Main thread sets, the loading thread looks.
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// The address in the state folder, for as long as it is true.
class Endpoint {
 public:
  static Result<Endpoint> announce(const std::string& state_dir, const std::string& url) {
    std::string path = endpoint_file(state_dir);
    TRY(written, write_file(path, url + "\n", 0600));
    return Endpoint(path);
  }
  Endpoint(Endpoint&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Endpoint& operator=(Endpoint&&) = delete;
  ~Endpoint() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }

 private:
  explicit Endpoint(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

Error already_running(const std::string& state_dir, const Error& why) {
  auto where = read_file(endpoint_file(state_dir), 4096);
  return Error{Errc::conflict, "already_running",
               fmt::format("already running in {}{}; stop that one first, or give another --state-dir", state_dir,
                           where ? " at " + trimmed(*where) : fmt::format(" ({})", why.message))};
}

// The screen of a terminal belongs to the table; everything that would be logged over it goes to a file.
Result<std::string> log_to_file(const std::string& state_dir) {
  std::string path = state_dir + "/weir.log";
  int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0 || ::dup2(file, 2) < 0)
    return Error{Errc::unavailable, "log_file", fmt::format("cannot write {}: {}", path, std::strerror(errno))};
  ::close(file);
  return path;
}

constexpr Duration kStopGrace = 15s;
constexpr Duration kClusterGrace = 5s;

// What runs beside the control plane: the simulated cameras, a published stream, the runner, and the screen.
class Everything {
 public:
  // `stream`: where a MediaMTX was named; `cluster`: where detection workers were.
  Everything(ServerProcess& process, OwnCommandSpec runner, std::optional<OwnCommandSpec> cluster, std::string url, int demo,
             std::string footage, std::optional<StreamDemoSetup> stream, std::string log, TerminalTable& table)
      : clock_(process.clock()),
        host_(process.io()),
        demo_(host_, process.clock(), *process.store().catalog, *process.store().catalog,
              [&process](std::string_view what, const CameraRecord& camera) {
                process.plane().announce_camera(what, camera);
              }),
        runner_(process.io(), process.clock(), host_, std::move(runner)),
        url_(std::move(url)),
        demo_cameras_(demo),
        footage_(std::move(footage)),
        log_(std::move(log)),
        table_(table) {
    if (cluster) cluster_.emplace(process.io(), clock_, host_, *std::move(cluster));
    if (stream)
      stream_.emplace(process.io(), clock_, *std::move(stream), [this](const std::string& line) { table_.say(line); });
  }

  asio::awaitable<void> run() {
    if (demo_cameras_ > 0) {
      table_.say(fmt::format("starting {} simulated cameras; the first time their footage is encoded", demo_cameras_));
      starting_ = true;
      auto started = co_await demo_.start(demo_cameras_, footage_);
      starting_ = false;
      if (!started && !stopping_) {
        log::error("demo.failed", started.error().message);
        table_.say("no simulated cameras: " + started.error().message);
      }
    }
    if (!stopping_ && stream_ && !demo_.first_url().empty()) {
      Status begun = stream_->start(demo_.first_url());
      if (!begun) table_.say("no published stream: " + begun.error().message);
    }
    if (!stopping_) co_await demo_.remove_left_behind();
    auto executor = co_await asio::this_coro::executor;
    spawn(executor, show(), "the screen");
    if (cluster_) spawn(executor, cluster_->run(), "the process of the detector cluster");
    co_await runner_.run();
  }
  asio::awaitable<void> stop() {
    stopping_ = true;
    show_now("stopping: cameras are let go; Ctrl-C again ends at once\n");
    if (starting_) co_await demo_.stop();  // nothing else would end its wait
    if (stream_) co_await stream_->stop();
    if (cluster_) co_await cluster_->stop(kClusterGrace);
    co_await runner_.stop(kStopGrace);
    co_await demo_.stop();
  }

 private:
  asio::awaitable<void> show() {
    while (!stopping_) {
      show_now();
      co_await clock_.wait(500ms);
    }
  }
  void show_now(std::string_view below = "") {
    for (const std::string& line : runner_.take_news()) table_.say(line);
    if (cluster_)
      for (const std::string& line : cluster_->take_news()) table_.say(line);
    const json::value cluster = cluster_ ? cluster_->state() : json::value();
    if (log_.empty())
      return (void)offer(fmt::format("{}{}{}", lines_.lines(runner_.state(), clock_.now()), cluster_lines_.lines(cluster), below));
    constexpr size_t kOwnRows = 3;  // the empty line above, the one below, and the cursor's
    TerminalSize size = terminal_size();
    size_t rows = size.rows - std::min(size.rows, kOwnRows);
    std::string placed = cluster_ ? cluster_text(cluster, rows / 3, cluster_->absence(log_)) : "";
    rows -= std::min(rows, static_cast<size_t>(std::ranges::count(placed, '\n')));
    std::string text = screen_text(runner_.state(), url_, clock_.wall(), rows, runner_.absence(log_));
    table_.draw(fmt::format("\n{}{}{}", text, placed, below), size);
  }

  Clock& clock_;
  posix::PosixHost host_;
  Demo demo_;
  std::optional<StreamDemo> stream_;
  OwnCommand runner_;
  std::optional<OwnCommand> cluster_;
  const std::string url_;
  const int demo_cameras_;
  const std::string footage_;
  const std::string log_;  // where it goes while the screen is a table; else empty
  TerminalTable& table_;
  ScreenLines lines_;
  ClusterLines cluster_lines_;
  bool starting_ = false, stopping_ = false;
};

std::string demo_footage(const Arguments& arguments) {
  if (arguments.has("footage")) return arguments.text("footage");
  return (fs::path(posix::helper_path("worker")).parent_path().parent_path() / "share/weir/footage/vtest.avi").string();
}

// One machine has nobody else to take its cameras: it lets go of them at once when it is stopped.
constexpr std::pair<std::string_view, std::string_view> kRunnerDefaults[] = {
    {"drain_batch", "10000"}, {"drain_timeout_s", "5"}};

// What a flag or the settings file of `weir up` says to a command below it. A flag may be given once, so those that
// stand in `out` already are left as they are.
void add_given(std::vector<std::string>& out, const Settings& settings, std::string_view used_by) {
  std::vector<std::string> given = passed_on(settings, used_by);
  for (size_t flag = 0; flag + 1 < given.size(); flag += 2)
    if (std::ranges::find(out, given[flag]) == out.end()) out.insert(out.end(), {given[flag], given[flag + 1]});
}

// Variables that a shell may hold for a runner of another control plane: here such a key would be refused, and this
// runner takes cameras of every tenant and site.
constexpr const char* kOfAnotherRunner[] = {"API_KEY", "RUNNER_SITE", "RUNNER_TENANT"};

OwnCommandSpec runner_spec(const Settings& settings, const std::string& url) {
  std::vector<std::string> out{"runner", "--runner-id", "local", "--control-plane-url", url};
  for (const auto& [name, value] : kRunnerDefaults)
    if (settings.origin(name) == "default") {
      out.push_back(setting_flag(name));
      out.emplace_back(value);
    }
  add_given(out, settings, "runner");
  return {.name = "runner", .arguments = std::move(out), .unset = {std::begin(kOfAnotherRunner), std::end(kOfAnotherRunner)}};
}

// The one process of a detector cluster, where workers are named. Their addresses may hold credentials, so the process
// reads them from a descriptor.
std::optional<OwnCommandSpec> cluster_spec(const Settings& settings, const std::string& url, const net::TokenKey& key) {
  std::string workers = settings.secret("detector_workers").reveal();
  if (workers.empty()) return std::nullopt;
  std::vector<std::string> words{"cluster", "--config", "/dev/fd/3", "--cluster-process-id", "local", "--listen",
                                 "127.0.0.1:0", "--control-plane-url", url, "--state-dir", settings.text("state_dir"),
                                 "--auth-secret-file", secret_file(settings)};
  add_given(words, settings, "cluster");
  auto bearer = [key] {
    return key.sign({.sub = "weir-up", .role = net::Role::viewer, .expires = wall_now() + 1min});
  };
  return OwnCommandSpec{.name = "cluster",
                        .arguments = std::move(words),
                        .document = Secret("detector_workers: " + json::to_text(json::value(workers)) + "\n"),
                        .unset = {"API_KEY", "CLUSTER_TENANT", "DETECTOR_WORKERS"},
                        .target = "/v1/cluster/state",
                        .bearer = std::move(bearer)};
}

// The published stream of the demo. What a flag or the file said of stream workers reaches them by the environment.
std::optional<StreamDemoSetup> stream_setup(const Arguments& arguments, const Settings& settings, const std::string& url) {
  if (!arguments.has("mediamtx")) return std::nullopt;
  StreamDemoSetup setup{.mediamtx = fs::absolute(arguments.text("mediamtx")).lexically_normal().string(),
                        .folder = fs::absolute(settings.text("state_dir")).lexically_normal().string() + "/stream",
                        .control_plane = url,
                        .secret_file = fs::absolute(secret_file(settings)).string()};
  for (const char* name : {"models_dir", "library_dir"})
    if (settings.origin(name) != "default" && !settings.text(name).empty())
      setup.environment.emplace_back(setting_environment(name), fs::absolute(settings.text(name)).string());
  return setup;
}

Result<int> up(const Arguments& arguments) {
  TRY(settings, arguments.settings());
  TRY(limit, arguments.number("for"));
  if (limit && (*limit < 0 || *limit > 1e9)) return usage_error("--for must be a number of seconds");
  TRY(demo, arguments.number("demo"));
  if (demo && (*demo < 0 || *demo > 1000)) return usage_error("--demo must be a number of cameras, at most 1000");
  if (arguments.has("mediamtx") && (!demo || *demo < 1))
    return usage_error("--mediamtx shows a simulated camera as a published stream: give --demo N as well");
  std::vector<CameraLine> cameras;
  if (arguments.has("cameras")) {
    TRY(text, read_file(arguments.text("cameras"), 64 << 20));
    TRY(lines, read_camera_file(text, arguments.text("cameras")));
    cameras = std::move(lines);
  }
  TRY(log_taken, check_log_file(log_file(settings)));
  TRY(logging, configure_logging(settings));
  std::string state_dir = settings.text("state_dir");
  TRY(made, make_private_folder(state_dir));

  ServerProcess process(arguments, settings);
  if (auto started = process.start(embedded_store(settings)); !started)
    return started.error().reason == "store_locked" ? already_running(state_dir, started.error()) : started.error();
  std::string url = process.url();
  TRY(endpoint, Endpoint::announce(state_dir, url));
  offer_line("listening on " + url);
  offer(welcome(url, fs::absolute(state_dir).lexically_normal().string()));

  TRY(key, net::TokenKey::load_or_create(secret_file(settings)));
  TerminalTable table;
  std::unique_ptr<CameraLoading> loading;
  if (!cameras.empty()) {
    Secret token = key.sign({.sub = "weir-up", .role = net::Role::admin, .expires = wall_now() + 15min});
    loading = std::make_unique<CameraLoading>(url, token, std::move(cameras), arguments.text("cameras"), table);
  }
  std::string log;
  if (::isatty(1) == 1 && ::isatty(2) == 1) {
    TRY(path, log_to_file(state_dir));
    TRY(again, configure_logging(settings));  // a file gets JSON
    table.say("The log goes to " + path + ".");
    log = path;
  }
  Everything everything(process, runner_spec(settings, url), cluster_spec(settings, url, key), url,
                        demo ? static_cast<int>(*demo) : 0, demo_footage(arguments), stream_setup(arguments, settings, url),
                        log, table);
  process.attach({.run = [&] { return everything.run(); },
                  .stop = [&] { return everything.stop(); },
                  .grace = kStopGrace});
  return process.run(limit ? std::optional(from_seconds(*limit)) : std::nullopt);
}

}  // namespace

Command up_command() {
  return {"up",
          "Start Weir on this machine, with everything in one folder",
          "weir up\nweir up --demo 4\nweir up --state-dir demo --listen 127.0.0.1:0 --for 60\n"
          "weir up --cameras cameras.yaml\nweir up --detector-workers ws://127.0.0.1:8000",
          "up",
          {{"for", "SECONDS", "Stop by itself after this time"},
           {"demo", "N", "Start this many simulated cameras that show real footage"},
           {"footage", "FILE", "The video that simulated cameras show"},
           {"mediamtx", "PROGRAM", "With --demo: show a published stream as well, through this MediaMTX"},
           {"cameras", "FILE", "Cameras to add or change (CSV or YAML); missing tenants and sites are created"}},
          up,
          kRunnerDefaults};
}

}  // namespace weir::apps
