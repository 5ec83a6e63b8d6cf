// MediaMtx: a private, real MediaMTX, to which a test publishes and which says who reads and who publishes.
//
// It listens for RTSP, RTMP and its control API on free ports of 127.0.0.1, and for nothing else, whatever its
// configuration says; a restart keeps the ports. Both generations of MediaMTX can be had: each calls its hooks by names
// of its own. It ends with its object, and so does every publisher. Main thread only.
#pragma once

#include "program.hpp"

#include "weir/ports/media_server.hpp"

#include <map>

namespace weir::test {

class MediaMtx {
 public:
  enum class Version { v1_13_1, v1_21_0 };
  // Why this version cannot be started here, as a reason to skip; "" where it can.
  static std::string missing(Version version = Version::v1_21_0);

  struct Options {
    Version version = Version::v1_21_0;
    std::string config = "paths:\n  all_others:\n";  // YAML, with further settings as the test needs them
    std::string certificate = {};                    // a file with one and its key, for rtsps
    std::map<std::string, std::string> environment = {};  // hooks get it too
  };
  explicit MediaMtx(const TempDir& folder, Options options);
  explicit MediaMtx(const TempDir& folder) : MediaMtx(folder, Options()) {}

  // "rtsp://127.0.0.1:PORT", and so on; a path follows behind a slash.
  const std::string& base() const { return base_; }
  const std::string& secure_base() const { return secure_base_; }
  const std::string& rtmp_base() const { return rtmp_base_; }
  const std::string& api_url() const { return api_url_; }
  int rtsp_port() const { return rtsp_port_; }
  std::string log() const { return text_in_file(log_path_); }
  Program& program() { return *program_; }

  // Ends MediaMTX in good order. Nobody keeps its ports for it until `start`.
  void stop();
  void start();
  void restart() {
    stop();
    start();
  }

  struct Publication {
    std::string clip = "h264";          // what is shown over and over, without encoding it again
    std::string query = {};             // behind the path: "lang=es"
    bool rtmp = false;                  // instead of RTSP over TCP
    std::vector<std::string> input = {};  // ffmpeg's words for another input, and for its encoding, instead of the clip
  };
  // SIGKILL ends the publisher without a word to MediaMTX, SIGTERM in good order, as does the object's end.
  std::unique_ptr<Program> publish(const std::string& path, const Publication& what) const;
  std::unique_ptr<Program> publish(const std::string& path) const { return publish(path, Publication()); }

  // What the control API says; the test fails where it does not answer.
  std::vector<MediaPath> paths() const;
  std::optional<MediaPath> path(const std::string& name) const;
  std::vector<MediaClient> readers(const std::string& name) const;
  // Waits until somebody publishes there, or nobody does.
  bool ready(const std::string& name, Duration limit = 20s) const;
  bool gone(const std::string& name, Duration limit = 20s) const;

 private:
  Result<std::optional<MediaPath>> ask(const std::string& name) const;

  const Options options_;
  const std::string folder_, log_path_;
  const int rtsp_port_, rtmp_port_, api_port_, secure_port_;
  const std::string base_, secure_base_, rtmp_base_, api_url_;
  mutable int publishers_ = 0;
  std::unique_ptr<Program> program_;
};

}  // namespace weir::test
