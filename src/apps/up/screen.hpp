// Screen: what `weir up` shows of its cameras: a table that redraws itself on a terminal, plain lines elsewhere.
//
// Both are made from the runner's report. Plain functions and values; main thread only.
#pragma once

#include "weir/base/json.hpp"
#include "weir/base/time.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace weir::apps {

// "person 0.76, car 0.55": the most certain first, equal ones counted ("3 person 0.76").
std::string seen_text(const json::value& detections);

// The table in at most `rows` lines; where they are too few, the cameras that deliver nothing stand first. While
// `state` is null, `absence` says why.
std::string screen_text(const json::value& state, const std::string& url, WallTime now, size_t rows = SIZE_MAX,
                        std::string_view absence = "");

// What a detector cluster does, below that table, in at most `rows` lines: each subscription with its worker, those in
// trouble first. While `state` is null, `absence` says why.
std::string cluster_text(const json::value& state, size_t rows, std::string_view absence);

// What happened at the runner since `heard`, which is moved on: a line each, with its time (UTC).
std::vector<std::string> news_of(const json::value& state, std::string& heard);

// Lines for a log: a camera is named when its state changes and when something is seen for the first time since; once a
// minute all of them are summed up.
class ScreenLines {
 public:
  std::string lines(const json::value& state, Instant now);

 private:
  struct Said {
    std::string state, detected_at;
    bool seen = false;  // since its state changed
  };
  std::map<std::string, Said> said_;
  Instant summed_up_{};
  double published_ = 0, events_ = 0;  // in all, as the workers count; since the last sum
};

// The same for a log: a subscription is named when its status or its worker changes.
class ClusterLines {
 public:
  std::string lines(const json::value& state);

 private:
  std::map<std::string, std::string> said_;
};

}  // namespace weir::apps
