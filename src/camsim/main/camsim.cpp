// `weir-camsim`: simulated RTSP cameras. Reads its command line, starts simulator and control endpoint, says on one
// line where they are, and ends at once when told to.
#include "weir/base/log.hpp"
#include "weir/base/spawn.hpp"
#include "weir/camsim/control.hpp"
#include "weir/net/server.hpp"

#include <CLI/CLI.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>

namespace weir::camsim {
namespace {

namespace asio = boost::asio;

constexpr unsigned kShutdownSeconds = 2;

struct CommandLine {
  std::string config, footage, cache, profile, listen = "127.0.0.1:0", control;
  int cameras = 1, recorders = 1;
  bool exit_with_stdin = false;
};

std::string default_cache() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::string base =
      cache != nullptr && *cache != '\0' ? cache : std::string(home != nullptr ? home : "/tmp") + "/.cache";
  return base + "/weir/camsim";
}

// cam-1 … cam-N, dealt out to the recorders in turn.
Config common_case(const CommandLine& line) {
  Config config;
  config.recorders.resize(static_cast<size_t>(line.recorders));
  for (int i = 0; i < line.recorders; ++i) {
    RecorderSpec& recorder = config.recorders[static_cast<size_t>(i)];
    recorder.name = fmt::format("recorder-{}", i + 1);
    recorder.listen = i == 0 ? line.listen : line.listen.substr(0, line.listen.rfind(':')) + ":0";
  }
  for (int i = 0; i < line.cameras; ++i)
    config.recorders[static_cast<size_t>(i % line.recorders)].cameras.push_back(
        {.name = fmt::format("cam-{}", i + 1), .profile = line.profile});
  return config;
}

Result<Config> configuration(const CommandLine& line) {
  Config config = common_case(line);
  if (!line.config.empty()) {
    std::ifstream file(line.config);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file) return Error{Errc::not_found, "no_file", fmt::format("cannot read {}", line.config)};
    TRY(read, json::read_text<Config>(text, json::Unknown::reject));
    config = std::move(read);
  }
  if (!line.footage.empty()) config.footage = line.footage;
  if (!line.cache.empty()) config.cache = line.cache;
  if (!line.control.empty()) config.control = line.control;
  if (config.cache.empty()) config.cache = default_cache();
  return config;
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Result<int> serve(const Config& config, bool exit_with_stdin) {
  asio::io_context io{1};
  asio::signal_set signals(io, SIGINT, SIGTERM);
  Simulator simulator(config.footage, config.cache);
  for (const RecorderSpec& recorder : config.recorders) {
    TRY(added, simulator.add_recorder(recorder));
  }
  RealClock clock;
  net::Router router;
  Control control(simulator);
  control.add_routes(router);
  net::HttpServer server(io, clock, router, {});
  TRY(listening, server.listen(config.control));

  json::object ready{{"control", "http://" + server.address()}, {"cameras", simulator.cameras()}};
  std::cout << json::to_text(ready) << std::endl;

  asio::posix::stream_descriptor input(io);
  std::array<char, 256> ignored;
  bool stopping = false;
  auto stop = [&] {
    if (std::exchange(stopping, true)) return;
    ::alarm(kShutdownSeconds);  // pipelines that hang in their shutdown are not waited for
    signals.cancel();
    if (input.is_open()) input.cancel();
    spawn(io.get_executor(), server.stop(0s), "the end of the server");
  };
  signals.async_wait([&](const boost::system::error_code&, int) { stop(); });
  std::function<void()> read_input = [&] {
    input.async_read_some(asio::buffer(ignored), [&](const boost::system::error_code& ended, size_t) {
      if (ended || stopping) return stop();
      read_input();
    });
  };
  if (exit_with_stdin) {
    input.assign(::dup(0));
    read_input();
  }
  io.run();
  control.stop();
  return 0;
}

int run(int argc, char** argv) {
  CommandLine line;
  CLI::App app(
      "Simulated RTSP cameras, for demonstrations and tests; they fail on command.\n\n"
      "  weir-camsim --cameras 4 --footage people.avi --profile codec=h265,fps=10 --listen 127.0.0.1:8554\n");
  app.add_option("--config", line.config, "JSON file that lists recorders and cameras");
  app.add_option("--cameras", line.cameras, "Number of cameras: cam-1, cam-2 …")->check(CLI::Range(0, 10'000));
  app.add_option("--recorders", line.recorders, "Listeners that the cameras are dealt out to")
      ->check(CLI::Range(1, 1000));
  app.add_option("--footage", line.footage, "Video file that the cameras show");
  app.add_option(
      "--profile", line.profile,
      "What their streams look like: codec=h264|h265|mjpeg,scene=footage|still|"
      "moving|halfstill,width=,height=,fps=,keyframe_s=,intra_refresh=,bframes=,bitrate_kbps=,seconds=,audio=,stamp=");
  app.add_option("--listen", line.listen, "Address of the first recorder; port 0 takes a free one");
  app.add_option("--control", line.control, "Address of the control endpoint (127.0.0.1:0)");
  app.add_option("--cache", line.cache, "Folder of encoded loops");
  app.add_flag("--exit-with-stdin", line.exit_with_stdin, "End when standard input ends");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& wrong) {
    return app.exit(wrong) == 0 ? 0 : 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  raise_descriptor_limit();
  log::configure({.readable = ::isatty(2) == 1});
  auto config = configuration(line);
  auto code = config ? serve(*config, line.exit_with_stdin) : Result<int>(config.error());
  if (code) return *code;
  std::cerr << "weir-camsim: " << code.error().message << std::endl;
  return code.error().code == Errc::invalid ? 2 : 1;
}

}  // namespace
}  // namespace weir::camsim

int main(int argc, char** argv) { return weir::camsim::run(argc, argv); }
