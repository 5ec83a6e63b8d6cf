// Dials: every attempt to connect, for tests that count them. Bounded: the oldest are forgotten, and counted.
// GLib thread only.
#pragma once

#include "weir/base/json.hpp"
#include "weir/base/time.hpp"

#include <deque>
#include <memory>
#include <set>

namespace weir::camsim {

struct Dial {
  WallTime at;
  std::string recorder, camera, peer;  // the camera is known from the first request on
  std::string outcome = "connecting";  // then "playing", a status such as "404", "black_hole" or "closed"
  bool first = false;                  // of its camera
  bool connecting = true;              // neither playing nor over
  std::optional<Duration> until_play = {};
};

class Dials {
 public:
  std::shared_ptr<Dial> add(const std::string& recorder, const std::string& peer);
  void name_camera(Dial& dial, const std::string& camera);
  void end_connecting(Dial& dial);  // it plays, or it is over
  void reset();
  json::object to_json() const;

 private:
  struct Concurrency {
    int now = 0, peak = 0;
  };
  std::deque<std::shared_ptr<Dial>> dials_;
  std::set<std::string> seen_;
  std::map<std::string, Concurrency> connects_;  // by recorder
  std::int64_t forgotten_ = 0;
};

}  // namespace weir::camsim
