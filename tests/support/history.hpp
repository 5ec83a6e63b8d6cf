// History: what a control plane's bus has accepted so far, and what must be true of it whatever happened.
//
// `read` fetches what is new since the last time; a control plane that is away is not an error. Main thread only.
#pragma once

#include "weir_process.hpp"

#include "weir/base/time.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weir::test {

struct Accepted {
  std::string kind;  // "detections", "stream.status", "stream.error", "runner.heartbeat" …
  std::string camera, runner, state, event_id;
  std::int64_t version = 0;
  std::optional<WallTime> captured;  // of the picture that it speaks of
  WallTime ts{}, stored{};
  std::int64_t frame = -1;
  bool summary = false;
};

class History {
 public:
  void read(const WeirProcess& plane);
  void add(Accepted event) { events_.push_back(std::move(event)); }
  const std::vector<Accepted>& events() const { return events_; }

  // Accepted versions of a camera never fall, capture times of two versions' detections never overlap, no event came
  // twice.
  void expect_one_voice() const;
  // When the bus first took it that the camera streams under a version above this one: a worker that stood by knew
  // earlier, and was not heard.
  std::optional<WallTime> streaming_above(const std::string& camera, std::int64_t version) const;
  // Pictures that a camera's events speak of, in order of capture, without repetition.
  std::vector<WallTime> captures(const std::string& camera) const;
  size_t count(const std::string& kind, const std::string& camera) const;

 private:
  std::string after_ = "0";
  std::vector<Accepted> events_;
};

}  // namespace weir::test
