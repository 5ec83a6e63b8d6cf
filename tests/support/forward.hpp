// What a forwarder stands between, for real: a hub that ffmpeg publishes to, an RTMP server, and the forwarder itself.
//
// Every server is private, on loopback and a free port, and ends with its object. The hub is go2rtc, which starts the
// publisher of a stream when somebody reads it, or MediaMTX, to which a test publishes. The RTMP server is nginx with its
// RTMP module: `live` takes everything, `denied` refuses every key, `kept` writes what it gets to a file.
// Main thread only.
#pragma once

#include "child.hpp"
#include "temp_files.hpp"

#include <map>
#include <memory>

namespace weir::test {

// Which of the servers that these tests start could not be fetched, as a reason to skip; "" where all are there.
std::string missing_servers();

// A program that runs until this object ends; its output is kept.
class Program {
 public:
  Program(std::string log_path, std::vector<std::string> words, std::string input = {});
  ~Program();
  Program(const Program&) = delete;
  int pid() const { return pid_; }
  std::string log() const { return text_in_file(log_path_); }
  void signal(int number) const;
  // Its exit code, 128 + signal, or -1 when it did not end within `limit`.
  int wait(Duration limit = 20s);
  bool running();

 private:
  const std::string log_path_;
  int pid_ = -1;
  std::optional<int> status_;
};

// A few seconds of moving picture and a tone, encoded once and kept under build/. Kinds: "h264" (with AAC), "bframes",
// "large" (a megabyte a second), "hevc", "opus" (H.264 with Opus).
std::string clip(const std::string& kind);

class Hub {
 public:
  // Streams by id, each a kind of clip.
  Hub(const TempDir& folder, const std::map<std::string, std::string>& streams);
  const std::string& base() const { return base_; }

 private:
  std::string base_;
  std::unique_ptr<Program> program_;
};

// Whether MediaMTX could be built: that needs Go and its registry.
bool mediamtx_is_there();
class MediaMtx {
 public:
  // `certificate`: a file with one and its key, for rtsps.
  explicit MediaMtx(const TempDir& folder, const std::string& certificate = {});
  const std::string& base() const { return base_; }
  const std::string& secure_base() const { return secure_base_; }
  std::string log() const { return program_->log(); }
  std::unique_ptr<Program> publish(const std::string& id, const std::string& kind) const;

 private:
  const std::string folder_;
  std::string base_, secure_base_;
  std::unique_ptr<Program> program_;
};

class RtmpServer {
 public:
  // `certificate`: a file with one and its key, for RTMPS.
  explicit RtmpServer(const TempDir& folder, const std::string& certificate = {});
  std::string url(const std::string& app, const std::string& key) const;
  int port() const { return port_; }
  int tls_port() const { return tls_port_; }
  int http_port() const { return http_port_; }  // speaks neither RTMP nor TLS
  std::string log() const { return text_in_file(folder_ + "/nginx.log"); }
  // The stream that somebody publishes now, as its player sees it: decoded frames of each kind in `seconds`.
  struct Seen {
    int video = 0, audio = 0;
    std::string text;
  };
  Seen watch(const std::string& key, int seconds) const;
  // Decoding times (ms) of everything that was written to `kept` under that key, in the order of arrival.
  std::vector<std::int64_t> kept(const std::string& key) const;
  Program& program() { return *program_; }

 private:
  const std::string folder_;
  int port_ = 0, http_port_ = 0, tls_port_ = 0;
  std::unique_ptr<Program> program_;
};

// A weir-egress with its settings on a descriptor, as a supervisor starts it.
class ForwarderProcess {
 public:
  ForwarderProcess(const TempDir& folder, const std::string& hub, const std::string& destination,
                   boost::json::object more = {});
  Child& child() { return child_; }
  // The log's lines with this event, oldest first.
  std::vector<boost::json::object> events(std::string_view event) const;
  bool said(std::string_view event, Duration limit = 20s) const;
  // The last line of an event, and a field of it as text; "" where there is none.
  std::string last(std::string_view event, std::string_view field) const;
  double metric(const std::string& name) const;  // the sum over its labels; -1 where there is none
  bool forwarding(Duration limit = 20s) const;

 private:
  Child child_;
};

// To its end, with the environment and flags of somebody at a keyboard.
struct Ended {
  int code = -1;
  std::vector<boost::json::object> lines;  // of its log
  std::string text;
};
Ended run_egress(const TempDir& folder, const std::vector<std::string>& variables,
                 const std::vector<std::string>& words = {});

std::vector<boost::json::object> json_lines(const std::string& text);

}  // namespace weir::test
