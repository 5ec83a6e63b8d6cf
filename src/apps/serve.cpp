#include "serve.hpp"

#include "camera_import.hpp"
#include "files.hpp"
#include "print.hpp"
#include "server_process.hpp"

#include "weir/base/log.hpp"
#include "weir/net/token.hpp"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

namespace weir::apps {

namespace {

namespace fs = std::filesystem;

Secret embedded_store(const Settings& settings) { return Secret("sqlite:" + settings.text("state_dir") + "/weir.db"); }

Result<int> control_plane(const Arguments& arguments) {
  TRY(settings, arguments.settings());
  TRY(logging, configure_logging(settings));
  Secret url = settings.secret("database_url");
  if (url.empty()) {
    TRY(made, make_private_folder(settings.text("state_dir")));
    url = embedded_store(settings);
  } else if (settings.text("auth_secret_file").empty()) {
    TRY(made, make_private_folder(settings.text("state_dir")));
  }
  ServerProcess process(arguments, settings);
  TRY(started, process.start(url));
  print_line("listening on " + url_of(process.address()));
  return process.run(std::nullopt);
}

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

// `weir up --cameras`: asks the API as anybody else would, from a thread of its own because each question blocks.
class CameraLoading {
 public:
  CameraLoading(std::string url, Secret token, std::vector<CameraLine> lines, std::string file)
      : url_(std::move(url)),
        token_(std::move(token)),
        lines_(std::move(lines)),
        file_(std::move(file)),
        thread_([this] { load(); }) {}
  ~CameraLoading() {
    stop_ = true;
    thread_.join();
  }
  CameraLoading(const CameraLoading&) = delete;

 private:
  void load() {
    auto api = Api::connect(url_, token_);
    if (!api) return complain(api.error().message);
    auto counts = import_cameras(*api, lines_, {.create = true, .update = true}, [&](const Imported& one) {
      if (one.result == "failed") complain(fmt::format("{}:{}: {}: {}", file_, one.line, one.camera, one.message));
      return !stop_;
    });
    print_line(fmt::format("cameras from {}: {} added, {} updated, {} failed", file_, counts.added, counts.updated,
                           counts.failed));
  }

  // Constant after construction.
  const std::string url_;
  const Secret token_;
  const std::vector<CameraLine> lines_;
  const std::string file_;
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

Result<int> up(const Arguments& arguments) {
  TRY(settings, arguments.settings());
  TRY(limit, arguments.number("for"));
  if (limit && (*limit < 0 || *limit > 1e9)) return usage_error("--for must be a number of seconds");
  std::vector<CameraLine> cameras;
  if (arguments.has("cameras")) {
    TRY(text, read_file(arguments.text("cameras"), 64 << 20));
    TRY(lines, read_camera_file(text, arguments.text("cameras")));
    cameras = std::move(lines);
  }
  TRY(logging, configure_logging(settings));
  std::string state_dir = settings.text("state_dir");
  TRY(made, make_private_folder(state_dir));

  ServerProcess process(arguments, settings);
  if (auto started = process.start(embedded_store(settings)); !started)
    return started.error().reason == "store_locked" ? already_running(state_dir, started.error()) : started.error();
  std::string url = url_of(process.address());
  TRY(endpoint, Endpoint::announce(state_dir, url));
  print_line("listening on " + url);
  print(welcome(url, fs::absolute(state_dir).lexically_normal().string()));

  std::unique_ptr<CameraLoading> loading;
  if (!cameras.empty()) {
    TRY(key, net::TokenKey::load_or_create(secret_file(settings)));
    Secret token = key.sign({.sub = "weir-up", .role = net::Role::admin, .expires = wall_now() + 15min});
    loading = std::make_unique<CameraLoading>(url, token, std::move(cameras), arguments.text("cameras"));
  }
  return process.run(limit ? std::optional(from_seconds(*limit)) : std::nullopt);
}

}  // namespace

std::vector<Command> serve_commands() {
  return {
      {"up",
       "Start Weir on this machine, with everything in one folder",
       "weir up\nweir up --state-dir demo --listen 127.0.0.1:0 --for 60\nweir up --cameras cameras.yaml",
       "up",
       {{"for", "SECONDS", "Stop by itself after this time"},
        {"cameras", "FILE", "Cameras to add or change (CSV or YAML); missing tenants and sites are created"}},
       up},
      {"control-plane",
       "Start a control plane: the authority on who owns which camera",
       "weir control-plane --db sqlite:weir.db\n"
       "weir control-plane --db postgres://weir@db/weir --listen 0.0.0.0:8080 --auth-secret-file /etc/weir/auth.secret",
       "control-plane",
       {},
       control_plane},
  };
}

}  // namespace weir::apps
