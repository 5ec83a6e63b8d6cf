// What a forwarder stands between, for real: a hub that ffmpeg publishes to, an RTMP server, and the forwarder itself.
//
// Every server is private, on loopback and a free port, and ends with its object. The hub is go2rtc, which starts the
// publisher of a stream when somebody reads it, or MediaMTX (mediamtx.hpp), to which a test publishes. The RTMP server
// is nginx with its RTMP module: `live` takes everything, `denied` refuses every key, `kept` writes what it gets to a
// file. Main thread only.
#pragma once

#include "child.hpp"
#include "program.hpp"

#include <map>

namespace weir::test {

// Which of the servers that these tests start could not be fetched, as a reason to skip; "" where all are there.
std::string missing_servers();

class Hub {
 public:
  // Streams by id, each a kind of clip.
  Hub(const TempDir& folder, const std::map<std::string, std::string>& streams);
  const std::string& base() const { return base_; }

 private:
  std::string base_;
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
  // The stream that is published now, as a player sees it: decoded frames of each kind in `seconds`.
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

// The stream at an address as a player sees it: decoded frames in `seconds`, by codec.
std::map<std::string, int> frames_at(const std::string& url, int seconds);

// A process that forwards, with its settings on a descriptor, as a supervisor starts it.
class ForwardingProcess {
 public:
  ForwardingProcess(const std::string& log_path, std::vector<std::string> words, const boost::json::object& settings)
      : child_(log_path, std::move(words), settings) {}
  Child& child() { return child_; }
  // The log's lines with this event, oldest first.
  std::vector<boost::json::object> events(std::string_view event) const;
  bool said(std::string_view event, Duration limit = 20s) const;
  // The last line of an event, and a field of it as text; "" where there is none.
  std::string last(std::string_view event, std::string_view field) const;
  double metric(const std::string& name) const;  // the sum over its labels; -1 where there is none

 private:
  Child child_;
};

class ForwarderProcess : public ForwardingProcess {
 public:
  ForwarderProcess(const TempDir& folder, const std::string& hub, const std::string& destination,
                   boost::json::object more = {});
  bool forwarding(Duration limit = 20s) const;
};

// A `weir-worker stream` of the stream s1, in passthrough where `more` does not say otherwise.
class StreamProcess : public ForwardingProcess {
 public:
  StreamProcess(const TempDir& folder, const std::string& hub, boost::json::object more = {});
  bool forwarding(Duration limit = 20s) const;
};

// Runs a forwarder to its end, with environment and flags as a person at a keyboard gives them.
struct Ended {
  int code = -1;
  std::vector<boost::json::object> lines;  // of its log
  std::string text;
};
Ended run_egress(const TempDir& folder, const std::vector<std::string>& variables,
                 const std::vector<std::string>& words = {});

std::vector<boost::json::object> json_lines(const std::string& text);

}  // namespace weir::test
