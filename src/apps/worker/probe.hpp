// `weir-worker probe`: one readable diagnosis of a camera, with the advice a person needs.
//
// One dial, or two where the camera answers: a bare connection tells how far the network reaches, the second one is the
// stream. A password is presented once. Main thread only.
#pragma once

#include "common/command.hpp"

#include "weir/base/secret.hpp"
#include "weir/ffmpeg/source.hpp"

namespace weir::apps {

struct Diagnosis {
  std::string url;                                // without credentials
  std::string address;                            // "192.0.2.7:554"
  std::optional<double> connect_ms = {};
  std::optional<double> open_s = {};              // until the first picture's packet
  std::optional<restart::StreamError> error = {};
  StreamFacts facts;
  bool tls = false;
  bool decoded = false;
  double fps = 0;                                 // measured
  double bitrate_kbit = 0;
  int keyframes = 0;
  std::optional<double> keyframe_interval_s = {}; // the largest; none before two came
  double watched_s = 0;
};

struct ProbePlan {
  Duration watch = 3s;        // at least
  Duration watch_max = 10s;   // for a second keyframe
};

// The JPEG of the last picture goes to `snapshot` where there is one.
Diagnosis probe(const ffmpeg::SourceConfig& config, const ProbePlan& plan, std::string* snapshot = nullptr);
std::vector<std::string> advice_on(const Diagnosis& diagnosis);
std::string readable(const Diagnosis& diagnosis);
json::object to_json(const Diagnosis& diagnosis);

Command probe_command();

}  // namespace weir::apps
