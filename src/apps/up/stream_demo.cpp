#include "stream_demo.hpp"

#include "common/files.hpp"

#include "weir/base/json.hpp"
#include "weir/base/log.hpp"
#include "weir/base/random.hpp"
#include "weir/base/spawn.hpp"
#include "weir/mediamtx/control_api.hpp"

#include <boost/asio/ip/tcp.hpp>

namespace weir::apps {

namespace asio = boost::asio;

namespace {

constexpr Duration kLeash = 8s;         // how long the two outlive this program
constexpr Duration kExtendEvery = 2s;
constexpr Duration kLook = 200ms;
constexpr Duration kShownWithin = 120s;  // the first pictures wait for the model to be loaded
constexpr Duration kStopGrace = 5s;
constexpr std::string_view kOut = "live/demo/out";

// The wanted port where nobody has it, else any free one.
int free_port(asio::io_context& io, int wanted) {
  using asio::ip::tcp;
  for (int port : {wanted, 0}) {
    tcp::acceptor probe(io);
    tcp::endpoint at(asio::ip::address_v4::loopback(), static_cast<unsigned short>(port));
    boost::system::error_code failed;
    probe.open(at.protocol(), failed);
    if (!failed) probe.bind(at, failed);
    if (!failed) return probe.local_endpoint().port();
  }
  return 0;
}

std::string local(int port) { return fmt::format("127.0.0.1:{}", port); }

// MediaMTX passes over variables that its version does not know, but refuses a file with such names. The hooks have the
// names that every version takes.
std::string mediamtx_file(const Secret& camera) {
  std::string hook = posix::helper_path("hook");
  auto text = [](const std::string& word) { return json::to_text(json::value(word)); };
  return fmt::format("paths:\n"
                     "  live/demo/in:\n"
                     "    source: {}\n"
                     "    rtspTransport: tcp\n"
                     "    runOnReady: {}\n"
                     "    runOnNotReady: {}\n"
                     "  all_others:\n",
                     text(camera.reveal()), text(hook + " ready"), text(hook + " not-ready"));
}

}  // namespace

Status StreamDemo::start(const Secret& camera) {
  TRY(made, make_private_folder(setup_.folder));
  TRY(written, write_file(setup_.folder + "/mediamtx.yml", mediamtx_file(camera), 0600));
  TRY(host, posix::KeeperHost::create(io_, {.folder = setup_.folder, .boot = BootId::trusted(random_hex(16)),
                                            .stop_grace = 2s, .sync_records = false}));
  host_ = std::move(host);
  ports_ = {.rtsp = free_port(io_, 8554), .hls = free_port(io_, 8888), .api = free_port(io_, 9997),
            .hooks = free_port(io_, 8086)};
  for (KeptSpec& spec : std::vector{mediamtx_spec(), orchestrator_spec()}) {
    ++kept_;
    spawn(io_.get_executor(), keep(std::move(spec)), "a process of the demo's stream");
  }
  spawn(io_.get_executor(), tell_when_shown(), "the demo's stream");
  return ok();
}

KeptSpec StreamDemo::mediamtx_spec() const {
  KeptSpec spec;
  spec.name = "mediamtx";
  spec.command = {setup_.mediamtx, setup_.folder + "/mediamtx.yml"};
  spec.output = setup_.folder + "/mediamtx.log";
  for (const char* off : {"MTX_RTMP", "MTX_WEBRTC", "MTX_SRT", "MTX_MOQ", "MTX_METRICS", "MTX_PPROF", "MTX_PLAYBACK"})
    spec.environment.emplace_back(off, "no");
  for (const char* on : {"MTX_RTSP", "MTX_HLS", "MTX_API"}) spec.environment.emplace_back(on, "yes");
  spec.environment.emplace_back("MTX_LOGLEVEL", "warn");
  spec.environment.emplace_back("MTX_RTSPTRANSPORTS", "tcp");
  spec.environment.emplace_back("MTX_RTSPADDRESS", local(ports_.rtsp));
  spec.environment.emplace_back("MTX_HLSADDRESS", local(ports_.hls));
  spec.environment.emplace_back("MTX_APIADDRESS", local(ports_.api));
  spec.environment.emplace_back("WEIR_ORCHESTRATOR_URL", "http://" + local(ports_.hooks));
  return spec;
}

KeptSpec StreamDemo::orchestrator_spec() const {
  KeptSpec spec;
  spec.name = "orchestrator";
  spec.command = {posix::self_path(), "orchestrator",
                  "--orchestrator-id", "local", "--orchestrator-tenant", "demo", "--orchestrator-site", "demo",
                  "--listen", local(ports_.hooks), "--state-dir", setup_.folder + "/state",
                  "--control-plane-url", setup_.control_plane, "--auth-secret-file", setup_.secret_file,
                  "--mediamtx-api", "http://" + local(ports_.api), "--mediamtx-rtsp-base", "rtsp://" + local(ports_.rtsp),
                  "--stream-lease-ttl-s", "6"};
  spec.output = setup_.folder + "/orchestrator.log";
  spec.environment = setup_.environment;
  // A shell may hold these for another control plane.
  spec.unset = {"API_KEY", "STREAMS_FILE", "WORKER_COMMAND", "HOOK_TOKEN_FILE"};
  return spec;
}

asio::awaitable<void> StreamDemo::keep(KeptSpec spec) {
  while (!stopping_) {
    spec.version = 1;
    spec.valid_until = clock_.now() + kLeash;
    auto started = co_await host_->start(spec);
    if (!started) {
      log::warn("demo.stream", started.error().message);
      co_await clock_.wait(1s);
      continue;
    }
    std::unique_ptr<Kept> process = *std::move(started);
    Instant extend_at = clock_.now();
    while (!stopping_ && process->running()) {
      if (clock_.now() >= extend_at) {
        Instant until = clock_.now() + kLeash;
        (void)co_await process->extend(1, {until, until});  // where it was not heard, the next one is
        extend_at += kExtendEvery;
      }
      co_await clock_.wait(kLook);
    }
    if (stopping_) process->kill();
    co_await process->wait();
    if (stopping_) break;
    log::warn("demo.stream", fmt::format("{} of the demo's stream ended and is started again; its log is {}", spec.name,
                                         spec.output));
    co_await clock_.wait(1s);
  }
  --kept_;
}

asio::awaitable<void> StreamDemo::tell_when_shown() {
  auto api = mediamtx::ControlApi::create(io_, {.url = Secret("http://" + local(ports_.api))});
  if (!api) co_return;
  for (Instant until = clock_.now() + kShownWithin; !stopping_ && clock_.now() < until;) {
    auto path = co_await (*api)->find(std::string(kOut));
    if (path && *path && (*path)->ready) {
      say_(fmt::format("a published stream, live/demo/in, is shown with what is detected in it: http://{}/{} in a browser, "
                       "rtsp://{}/{} in a player", local(ports_.hls), kOut, local(ports_.rtsp), kOut));
      co_return;
    }
    co_await clock_.wait(500ms);
  }
  if (!stopping_) say_(fmt::format("the demo's published stream does not come; the logs in {} say why", setup_.folder));
}

asio::awaitable<void> StreamDemo::stop() {
  stopping_ = true;
  for (Instant until = clock_.now() + kStopGrace; kept_ > 0 && clock_.now() < until;) co_await clock_.wait(20ms);
}

}  // namespace weir::apps
