// For this folder's tests: a viewer that decodes a stream and reads its stamps, and a client that speaks RTSP (or HTTP)
// by hand. Each belongs to one thread.
#pragma once

#include "gst.hpp"
#include "temp_files.hpp"
#include "weir/base/time.hpp"
#include "weir/camsim/stamp.hpp"

#include <gst/app/gstappsink.h>

#include <fmt/format.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <charconv>
#include <optional>
#include <string>

namespace weir::camsim::testing {

struct Seen {
  std::optional<Stamp> stamp;
  int width = 0, height = 0;
};

// An RTSP client of GStreamer's, over TCP. `more` are further properties of rtspsrc.
class Viewer {
 public:
  explicit Viewer(const std::string& url, const std::string& more = "")
      : pipeline_(Pipeline::create(fmt::format(
            "rtspsrc location={} latency=0 protocols=tcp {} ! decodebin ! videoconvert ! video/x-raw,format=I420 ! "
            "appsink name=out sync=false",
            url, more))) {
    WEIR_ASSERT(bool(pipeline_));
    out_ = pipeline_->element<GstAppSink>("out");
    pipeline_->play();
  }

  // The next picture, if one comes within ten seconds.
  std::optional<Seen> next() {
    GstSample* sample = gst_app_sink_try_pull_sample(out_.get(), 10 * GST_SECOND);
    if (sample == nullptr) return std::nullopt;
    Seen seen;
    GstStructure* caps = gst_caps_get_structure(gst_sample_get_caps(sample), 0);
    gst_structure_get_int(caps, "width", &seen.width);
    gst_structure_get_int(caps, "height", &seen.height);
    GstMapInfo map;
    if (gst_buffer_map(gst_sample_get_buffer(sample), &map, GST_MAP_READ)) {
      seen.stamp = read_stamp(map.data, (seen.width + 3) / 4 * 4);
      gst_buffer_unmap(gst_sample_get_buffer(sample), &map);
    }
    gst_sample_unref(sample);
    return seen;
  }

 private:
  Result<Pipeline> pipeline_;
  Ref<GstAppSink> out_;
};

class Talker {
 public:
  // To the port in "scheme://127.0.0.1:PORT/…".
  explicit Talker(const std::string& url) : url_(url), fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    size_t colon = url.find(':', url.find("//"));
    std::uint16_t port = 0;
    std::from_chars(url.data() + colon + 1, url.data() + url.size(), port);
    sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    set_patience(10s);
  }
  ~Talker() { ::close(fd_); }
  Talker(const Talker&) = delete;

  bool connected() const { return connected_; }
  void set_patience(Duration d) {
    timeval limit{.tv_sec = d / 1s, .tv_usec = d % 1s / 1us};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  void send(const std::string& text) { (void)::send(fd_, text.data(), text.size(), MSG_NOSIGNAL); }
  // What came: "" at the end of the connection, nothing when its patience is over.
  std::optional<std::string> receive() {
    char bytes[16384];
    ssize_t got = ::recv(fd_, bytes, sizeof bytes, 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
    return std::string(bytes, static_cast<size_t>(std::max<ssize_t>(got, 0)));
  }
  bool ends() {  // reads on until the connection is closed
    while (auto got = receive())
      if (got->empty()) return true;
    return false;
  }
  // The answer's status; 0 when the connection ended instead, -1 when nothing came.
  int ask(const std::string& request) {
    send(request);
    answer_.clear();
    while (answer_.find("\r\n\r\n") == std::string::npos) {
      auto got = receive();
      if (!got) return -1;
      if (got->empty()) return 0;
      answer_ += *got;
      while (answer_.starts_with('$') && answer_.size() >= 4) {  // a packet that came between
        size_t packet = 4 + static_cast<unsigned char>(answer_[2]) * 256u + static_cast<unsigned char>(answer_[3]);
        if (answer_.size() < packet) break;
        answer_.erase(0, packet);
      }
    }
    return std::atoi(answer_.c_str() + answer_.find(' ') + 1);
  }
  const std::string& answer() const { return answer_; }

  int rtsp(std::string_view method, std::string_view more = "", std::string_view track = "") {
    return ask(
        fmt::format("{} {}{} RTSP/1.0\r\nCSeq: {}\r\n{}{}\r\n", method, url_, track, ++sequence_, session_, more));
  }
  // DESCRIBE, SETUP and PLAY; the first status that is not 200.
  int play() {
    if (int code = rtsp("DESCRIBE"); code != 200) return code;
    if (int code = rtsp("SETUP", "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n", "/stream=0"); code != 200)
      return code;
    size_t at = answer_.find("Session: ");
    session_ = answer_.substr(at, answer_.find_first_of(";\r", at) - at) + "\r\n";
    return rtsp("PLAY");
  }

 private:
  const std::string url_;
  const int fd_;
  bool connected_ = false;
  int sequence_ = 0;
  std::string session_, answer_;
};

}  // namespace weir::camsim::testing
