#include "forward.hpp"

#include "shard.hpp"
#include "stall.hpp"

#include "weir/base/json.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace weir::test {

namespace fs = std::filesystem;

namespace {

bool accepts(int port) {
  int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{.sin_family = AF_INET, .sin_port = htons(static_cast<std::uint16_t>(port)),
                 .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  bool connected = ::connect(probe, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
  ::close(probe);
  return connected;
}

void write_text(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

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

// ---- programs ----

Program::Program(std::string log_path, std::vector<std::string> words, std::string input)
    : log_path_(std::move(log_path)) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int in[2];
  EXPECT_EQ(::pipe2(in, O_CLOEXEC), 0);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    int log = ::open(log_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(in[0], 0);
    ::dup2(log, 1);
    ::dup2(log, 2);
    ::close_range(3, ~0U, 0);  // sockets of the test itself, which would outlive their end there
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  EXPECT_EQ(::write(in[1], input.data(), input.size()), static_cast<ssize_t>(input.size()));
  ::close(in[0]);
  ::close(in[1]);
}

Program::~Program() {
  if (!running()) return;
  signal(SIGTERM);
  if (wait(3s) == -1) {
    signal(SIGCONT);
    signal(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

void Program::signal(int number) const {
  if (!status_) ::kill(pid_, number);
}

bool Program::running() {
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_)
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return !status_;
}

int Program::wait(Duration limit) {
  eventually(limit, [&] { return !running(); });
  return status_.value_or(-1);
}

// ---- clips ----

std::string clip(const std::string& kind) {
  std::string folder = std::string(WEIR_SOURCE_DIR) + "/build/clips", path = folder + "/" + kind + ".mkv";
  if (fs::exists(path)) return path;
  fs::create_directories(folder);
  bool large = kind == "large";
  std::vector<std::string> words{
      "ffmpeg", "-nostdin", "-loglevel", "error", "-y", "-f", "lavfi", "-i",
      large ? "testsrc=size=1280x720:rate=25,noise=alls=60:allf=t" : "testsrc=size=320x240:rate=25", "-f", "lavfi", "-i",
      "sine=frequency=440:sample_rate=48000", "-t", "6", "-pix_fmt", "yuv420p", "-g", "25"};
  auto add = [&](std::vector<std::string> more) { words.insert(words.end(), more.begin(), more.end()); };
  if (kind == "hevc") add({"-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none"});
  else if (kind == "bframes") add({"-c:v", "libx264", "-preset", "veryfast", "-bf", "2"});
  else add({"-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency"});
  if (large) add({"-b:v", "8M", "-maxrate", "8M", "-bufsize", "8M"});
  add(kind == "opus" ? std::vector<std::string>{"-c:a", "libopus"} : std::vector<std::string>{"-c:a", "aac"});
  std::string draft = fmt::format("{}.{}", path, ::getpid());
  add({"-f", "matroska", draft});
  TempDir notes;
  Program encoder(notes.path() + "/log", words);
  EXPECT_EQ(encoder.wait(60s), 0) << encoder.log();
  fs::rename(draft, path);
  return path;
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

bool mediamtx_is_there() { return !part("bin/mediamtx").empty(); }

MediaMtx::MediaMtx(const TempDir& folder, const std::string& certificate) : folder_(folder.path()) {
  int port = free_port();
  std::string path = folder.path() + "/mediamtx.yml", tls;
  if (!certificate.empty()) {
    int secure = free_port();
    tls = fmt::format("rtspEncryption: optional\nrtspsAddress: 127.0.0.1:{}\nrtspServerKey: {}\nrtspServerCert: {}\n",
                      secure, certificate, certificate);
    secure_base_ = fmt::format("rtsps://127.0.0.1:{}", secure);
  }
  write_text(path, fmt::format("logLevel: debug\nrtspAddress: 127.0.0.1:{}\nrtspTransports: [tcp]\n{}rtmp: no\nhls: no\n"
                               "webrtc: no\nsrt: no\nmoq: no\napi: no\npaths:\n  all_others:\n", port, tls));
  program_ = std::make_unique<Program>(folder.path() + "/mediamtx.log",
                                       std::vector<std::string>{part("bin/mediamtx"), path});
  EXPECT_TRUE(eventually(20s, [&] { return accepts(port); })) << program_->log();
  base_ = fmt::format("rtsp://127.0.0.1:{}", port);
}

std::unique_ptr<Program> MediaMtx::publish(const std::string& id, const std::string& kind) const {
  return std::make_unique<Program>(
      folder_ + "/publisher.log",
      std::vector<std::string>{"ffmpeg", "-nostdin", "-loglevel", "error", "-re", "-stream_loop", "-1", "-i", clip(kind),
                               "-c", "copy", "-f", "rtsp", "-rtsp_transport", "tcp",
                               fmt::format("{}/live/{}/out", base_, id)});
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

RtmpServer::Seen RtmpServer::watch(const std::string& key, int seconds) const {
  TempDir folder;
  Seen seen;
  seen.text = output_of(folder,
                        {"ffprobe", "-v", "error", "-count_frames", "-read_intervals", fmt::format("%+{}", seconds),
                         "-show_entries", "stream=codec_name,nb_read_frames", "-of", "csv=p=0", url("live", key)},
                        40s);
  std::istringstream lines(seen.text);
  for (std::string line; std::getline(lines, line);) {
    size_t comma = line.find(',');
    int frames = comma == std::string::npos ? 0 : std::atoi(line.c_str() + comma + 1);
    if (line.starts_with("h264,")) seen.video = frames;
    if (line.starts_with("aac,")) seen.audio = frames;
  }
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
    : child_(fmt::format("{}/egress-{}.stderr", folder.path(), free_port()), {WEIR_EGRESS, "--config", "/dev/fd/3"},
             settings_of(folder, hub, destination, std::move(more))) {}

std::vector<boost::json::object> json_lines(const std::string& text) {
  std::vector<boost::json::object> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (auto parsed = json::parse_text(line); parsed && parsed->is_object()) found.push_back(parsed->as_object());
  return found;
}

std::vector<boost::json::object> ForwarderProcess::events(std::string_view event) const {
  std::vector<boost::json::object> found;
  for (boost::json::object& line : json_lines(child_.log()))
    if (line["event"] == boost::json::value(event)) found.push_back(std::move(line));
  return found;
}

bool ForwarderProcess::said(std::string_view event, Duration limit) const {
  return eventually(limit, [&] { return !events(event).empty(); });
}

std::string ForwarderProcess::last(std::string_view event, std::string_view field) const {
  auto all = events(event);
  const boost::json::value* value = all.empty() ? nullptr : all.back().if_contains(field);
  if (value == nullptr) return "";
  return value->is_string() ? std::string(value->get_string()) : json::to_text(*value);
}

double ForwarderProcess::metric(const std::string& name) const {
  std::istringstream lines(child_.get("/metrics").text);
  double sum = -1;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(name + "{")) sum = std::max(sum, 0.0) + std::atof(line.c_str() + line.rfind(' '));
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
