#include "forward.hpp"

#include "clip.hpp"
#include "shard.hpp"
#include "stall.hpp"
#include "where.hpp"

#include "weir/base/json.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <sstream>

namespace weir::test {

namespace fs = std::filesystem;

namespace {

// What a program prints, to its end.
std::string output_of(const TempDir& folder, const std::vector<std::string>& words, Duration limit) {
  std::string path = fmt::format("{}/output-{}", folder.path(), ::getpid());
  std::error_code ignored;
  fs::remove(path, ignored);
  Program program(path, words);
  EXPECT_EQ(program.wait(limit), 0) << words[0] << ": " << program.log();
  return program.log();
}

}  // namespace

std::string missing_servers() {
  for (const char* needed : {"bin/go2rtc", "bin/nginx", "lib/ngx_rtmp_module.so"})
    if (part(needed).empty()) return std::string(needed) + " could not be fetched";
  return "";
}

// ---- hubs ----

Hub::Hub(const TempDir& folder, const std::map<std::string, std::string>& streams) {
  int port = free_port();
  std::string text = fmt::format("api: {{listen: \"\"}}\nwebrtc: {{listen: \"\"}}\nsrtp: {{listen: \"\"}}\n"
                                 "rtsp: {{listen: \"127.0.0.1:{}\"}}\nstreams:\n", port);
  for (const auto& [id, kind] : streams)
    text += fmt::format("  live/{}/out: \"exec:ffmpeg -nostdin -loglevel error -re -stream_loop -1 -i {} -c copy -f rtsp "
                        "-rtsp_transport tcp {{output}}\"\n", id, clip(kind));
  std::string path = folder.path() + "/go2rtc.yml";
  write_text(path, text);
  program_ = std::make_unique<Program>(folder.path() + "/go2rtc.log",
                                       std::vector<std::string>{part("bin/go2rtc"), "-c", path});
  EXPECT_TRUE(eventually(20s, [&] { return accepts(port); })) << program_->log();
  base_ = fmt::format("rtsp://127.0.0.1:{}", port);
}

// ---- the RTMP server ----

RtmpServer::RtmpServer(const TempDir& folder, const std::string& certificate)
    : folder_(folder.path()), port_(free_port()), http_port_(free_port()) {
  if (!certificate.empty()) tls_port_ = free_port();
  fs::create_directories(folder_ + "/kept");
  auto fill = [&](std::string text) {
    for (auto [mark, value] : {std::pair{"@D", folder_}, {"@MODULE", part("lib/ngx_rtmp_module.so")},
                               {"@RTMP", std::to_string(port_)}, {"@HTTP", std::to_string(http_port_)}, {"@STREAM", part("lib/ngx_stream_module.so")},
                               {"@TLS", std::to_string(tls_port_)}, {"@CERTIFICATE", certificate}})
      for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark)) text.replace(at, strlen(mark), value);
    return text;
  };
  std::string module = certificate.empty() ? "" : "load_module @STREAM;";
  std::string tls = certificate.empty() ? "" : R"(
stream { server {
  listen 127.0.0.1:@TLS ssl; ssl_certificate @CERTIFICATE; ssl_certificate_key @CERTIFICATE; proxy_pass 127.0.0.1:@RTMP;
} }
)";
  write_text(folder_ + "/nginx.conf", fill(module + R"(
load_module @MODULE;
daemon off; master_process off; pid @D/nginx.pid; error_log @D/nginx.log info;
events { worker_connections 256; }
rtmp {
  access_log off;
  server {
    listen 127.0.0.1:@RTMP;
    application live { live on; }
    application denied { live on; on_publish http://127.0.0.1:@HTTP/denied; }
    application kept { live on; record all; record_path @D/kept; record_unique on; }
  }
}
http {
  access_log off;
  client_body_temp_path @D/n1; proxy_temp_path @D/n2; fastcgi_temp_path @D/n3; uwsgi_temp_path @D/n4; scgi_temp_path @D/n5;
  server { listen 127.0.0.1:@HTTP; location = /denied { return 403; } }
}
)" + tls));
  program_ = std::make_unique<Program>(
      folder_ + "/nginx.out", std::vector<std::string>{part("bin/nginx"), "-p", folder_, "-e", folder_ + "/nginx.log", "-c",
                                                       folder_ + "/nginx.conf"});
  EXPECT_TRUE(eventually(20s, [&] { return accepts(port_); })) << program_->log() << log();
}

std::string RtmpServer::url(const std::string& app, const std::string& key) const {
  return fmt::format("rtmp://127.0.0.1:{}/{}/{}", port_, app, key);
}

namespace {
std::string counted(const std::string& url, int seconds) {
  TempDir folder;
  std::vector<std::string> words{"ffprobe", "-v", "error", "-count_frames", "-read_intervals",
                                 fmt::format("%+{}", seconds), "-show_entries", "stream=codec_name,nb_read_frames", "-of",
                                 "csv=p=0"};
  if (url.starts_with("rtsp")) words.insert(words.end(), {"-rtsp_transport", "tcp"});
  words.push_back(url);
  return output_of(folder, words, 40s);
}
}  // namespace

std::map<std::string, int> frames_at(const std::string& url, int seconds) {
  std::map<std::string, int> frames;
  std::istringstream lines(counted(url, seconds));
  for (std::string line; std::getline(lines, line);)
    if (size_t comma = line.find(','); comma != std::string::npos)
      frames[line.substr(0, comma)] = std::atoi(line.c_str() + comma + 1);
  return frames;
}

RtmpServer::Seen RtmpServer::watch(const std::string& key, int seconds) const {
  Seen seen;
  auto frames = frames_at(url("live", key), seconds);
  seen.video = frames["h264"];
  seen.audio = frames["aac"];
  for (const auto& [codec, count] : frames) seen.text += fmt::format("{},{}\n", codec, count);
  return seen;
}

std::vector<std::int64_t> RtmpServer::kept(const std::string& key) const {
  std::vector<std::int64_t> times;
  for (const auto& entry : fs::directory_iterator(folder_ + "/kept")) {
    if (!entry.path().filename().string().starts_with(key)) continue;
    TempDir folder;
    std::istringstream lines(output_of(folder, {"ffprobe", "-v", "error", "-show_entries", "packet=dts", "-of", "csv=p=0",
                                                entry.path().string()}, 40s));
    for (std::string line; std::getline(lines, line);)
      if (!line.empty()) times.push_back(std::atoll(line.c_str()));
  }
  return times;
}

// ---- the forwarder ----

namespace {
boost::json::object settings_of(const TempDir& folder, const std::string& hub, const std::string& destination,
                                boost::json::object more) {
  boost::json::object all{{"egress_enabled", true},       {"stream_id", "s1"},
                          {"run_id", "run-1"},            {"instance_id", "instance-1"},
                          {"mediamtx_rtsp_base", hub},    {"dest_rtmp_url", destination},
                          {"prom_egress_port", 0},        {"log_dir", folder.path() + "/logs"}};
  for (auto& [name, value] : more) all[name] = value;
  return all;
}
}  // namespace

ForwarderProcess::ForwarderProcess(const TempDir& folder, const std::string& hub, const std::string& destination,
                                   boost::json::object more)
    : ForwardingProcess(fmt::format("{}/egress-{}.stderr", folder.path(), free_port()),
                        {WEIR_EGRESS, "--config", "/dev/fd/3"}, settings_of(folder, hub, destination, std::move(more))) {}

namespace {
boost::json::object stream_settings(const TempDir& folder, const std::string& hub, boost::json::object more) {
  boost::json::object all{{"stream_id", "s1"},           {"run_id", "run-1"},
                          {"instance_id", "instance-1"}, {"mediamtx_rtsp_base", hub},
                          {"stream_mode", "passthrough"}, {"log_dir", folder.path() + "/logs"}};
  for (auto& [name, value] : more) all[name] = value;
  return all;
}
}  // namespace

StreamProcess::StreamProcess(const TempDir& folder, const std::string& hub, boost::json::object more)
    : ForwardingProcess(fmt::format("{}/stream-{}.stderr", folder.path(), free_port()),
                        {WEIR_WORKER, "stream", "--config", "/dev/fd/3"}, stream_settings(folder, hub, std::move(more))) {}

bool StreamProcess::forwarding(Duration limit) const {
  return eventually(limit, [&] { return metric("weir_stream_worker_forwarding") == 1; });
}

std::vector<boost::json::object> json_lines(const std::string& text) {
  std::vector<boost::json::object> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (auto parsed = json::parse_text(line); parsed && parsed->is_object()) found.push_back(parsed->as_object());
  return found;
}

std::vector<boost::json::object> ForwardingProcess::events(std::string_view event) const {
  std::vector<boost::json::object> found;
  for (boost::json::object& line : json_lines(child_.log()))
    if (line["event"] == boost::json::value(event)) found.push_back(std::move(line));
  return found;
}

bool ForwardingProcess::said(std::string_view event, Duration limit) const {
  return eventually(limit, [&] { return !events(event).empty(); });
}

std::string ForwardingProcess::last(std::string_view event, std::string_view field) const {
  auto all = events(event);
  const boost::json::value* value = all.empty() ? nullptr : all.back().if_contains(field);
  if (value == nullptr) return "";
  return value->is_string() ? std::string(value->get_string()) : json::to_text(*value);
}

double ForwardingProcess::metric(const std::string& name) const {
  std::istringstream lines(child_.get("/metrics").text);
  double sum = -1;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(name + "{") || line.starts_with(name + " ")) sum = std::max(sum, 0.0) + std::atof(line.c_str() + line.rfind(' '));
  return sum;
}

bool ForwarderProcess::forwarding(Duration limit) const {
  return eventually(limit, [&] { return metric("egress_forwarder_forwarding") == 1; });
}

Ended run_egress(const TempDir& folder, const std::vector<std::string>& variables, const std::vector<std::string>& words) {
  std::vector<std::string> all{"env", "-C", folder.path()};
  all.insert(all.end(), variables.begin(), variables.end());
  all.push_back(WEIR_EGRESS);
  all.insert(all.end(), words.begin(), words.end());
  Program program(fmt::format("{}/egress-{}.out", folder.path(), free_port()), all);
  Ended ended{.code = program.wait(60s)};
  ended.text = program.log();
  ended.lines = json_lines(ended.text);
  std::erase_if(ended.lines, [](const auto& line) { return !line.contains("event"); });
  return ended;
}

}  // namespace weir::test
