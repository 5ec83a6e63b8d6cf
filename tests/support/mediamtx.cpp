#include "mediamtx.hpp"

#include "clip.hpp"
#include "postgres_server.hpp"
#include "run.hpp"
#include "shard.hpp"
#include "stall.hpp"

#include "weir/mediamtx/control_api.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace weir::test {

namespace {

std::string program_of(MediaMtx::Version version) {
  return part(version == MediaMtx::Version::v1_21_0 ? "bin/mediamtx" : "bin/mediamtx-1.13.1");
}

std::string local(int port) { return fmt::format("127.0.0.1:{}", port); }

// Asks the control API once, on a connection of its own.
template <class Question>
auto ask_api(const std::string& url, Question question) {
  boost::asio::io_context io;
  auto api = mediamtx::ControlApi::create(io, {.url = Secret(url)});
  WEIR_ASSERT(api);
  return run(io, question(**api));
}

}  // namespace

std::string MediaMtx::missing(Version version) {
  if (!program_of(version).empty()) return "";
  return fmt::format("MediaMTX {} could not be built: no Go, or its registry is out of reach",
                     version == Version::v1_21_0 ? "1.21.0" : "1.13.1");
}

MediaMtx::MediaMtx(const TempDir& folder, Options options)
    : options_(std::move(options)), folder_(folder.path()), log_path_(folder_ + "/mediamtx.log"),
      rtsp_port_(free_port()), rtmp_port_(free_port()), api_port_(free_port()), secure_port_(free_port()),
      base_("rtsp://" + local(rtsp_port_)), secure_base_("rtsps://" + local(secure_port_)),
      rtmp_base_("rtmp://" + local(rtmp_port_)), api_url_("http://" + local(api_port_)) {
  write_text(folder_ + "/mediamtx.yml", options_.config);
  start();
}

void MediaMtx::start() {
  std::vector<std::string> words{"env"};
  auto set = [&](const std::string& name, const std::string& value) { words.push_back(name + "=" + value); };
  // A variable counts more than the file, and a version passes over those that it does not know.
  for (const char* off : {"MTX_HLS", "MTX_WEBRTC", "MTX_SRT", "MTX_MOQ", "MTX_METRICS", "MTX_PPROF", "MTX_PLAYBACK"})
    set(off, "no");
  for (const char* on : {"MTX_RTSP", "MTX_RTMP", "MTX_API"}) set(on, "yes");
  set("MTX_LOGLEVEL", "debug");
  set("MTX_RTSPTRANSPORTS", "tcp");
  set("MTX_RTSPADDRESS", local(rtsp_port_));
  set("MTX_RTMPADDRESS", local(rtmp_port_));
  set("MTX_APIADDRESS", local(api_port_));
  if (!options_.certificate.empty()) {
    set("MTX_RTSPENCRYPTION", "optional");
    set("MTX_RTSPSADDRESS", local(secure_port_));
    set("MTX_RTSPSERVERKEY", options_.certificate);
    set("MTX_RTSPSERVERCERT", options_.certificate);
  }
  for (const auto& [name, value] : options_.environment) set(name, value);
  words.push_back(program_of(options_.version));
  words.push_back(folder_ + "/mediamtx.yml");
  program_ = std::make_unique<Program>(log_path_, words);
  // The API is the last to listen, but a predecessor's connections may keep the others waiting.
  auto listens = [&] { return accepts(api_port_) && accepts(rtsp_port_) && accepts(rtmp_port_); };
  EXPECT_TRUE(eventually(20s, [&] { return listens() || !program_->running(); }) && program_->running()) << log();
}

void MediaMtx::stop() {
  program_->signal(SIGTERM);
  EXPECT_NE(program_->wait(10s), -1) << log();
}

std::unique_ptr<Program> MediaMtx::publish(const std::string& path, const Publication& what) const {
  std::vector<std::string> words{"ffmpeg", "-nostdin", "-loglevel", "error", "-re"};
  auto add = [&](const std::vector<std::string>& more) { words.insert(words.end(), more.begin(), more.end()); };
  if (what.input.empty()) add({"-stream_loop", "-1", "-i", clip(what.clip), "-c", "copy", "-strict", "experimental"});
  else add(what.input);
  if (what.rtmp) add({"-f", "flv"});
  else add({"-f", "rtsp", "-rtsp_transport", "tcp"});
  words.push_back((what.rtmp ? rtmp_base_ : base_) + "/" + path + (what.query.empty() ? "" : "?" + what.query));
  return std::make_unique<Program>(fmt::format("{}/publisher-{}.log", folder_, ++publishers_), words);
}

std::vector<MediaPath> MediaMtx::paths() const {
  auto all = ask_api(api_url_, [](MediaServer& api) { return api.list([](std::string_view) { return true; }); });
  EXPECT_TRUE(all) << all.error().message;
  return all ? *all : std::vector<MediaPath>();
}

Result<std::optional<MediaPath>> MediaMtx::ask(const std::string& name) const {
  return ask_api(api_url_, [&](MediaServer& api) { return api.find(name); });
}

std::optional<MediaPath> MediaMtx::path(const std::string& name) const {
  auto found = ask(name);
  EXPECT_TRUE(found) << found.error().message;
  return found ? *found : std::nullopt;
}

std::vector<MediaClient> MediaMtx::readers(const std::string& name) const {
  auto found = path(name);
  return found ? found->readers : std::vector<MediaClient>();
}

bool MediaMtx::ready(const std::string& name, Duration limit) const {
  return eventually(limit, [&] {
    auto found = ask(name);
    return found && *found && (*found)->ready;
  });
}

bool MediaMtx::gone(const std::string& name, Duration limit) const {
  return eventually(limit, [&] {
    auto found = ask(name);
    return found && !(*found && (*found)->ready);
  });
}

}  // namespace weir::test
