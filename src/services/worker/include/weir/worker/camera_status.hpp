// CameraStatus: what is known of one camera's stream right now, written by its thread and read by all others.
//
// Received pictures decide whether a camera delivers; decoded and inferred ones are counted beside them, because a still
// scene needs hardly any. Any thread.
#pragma once

#include "weir/event/events.hpp"
#include "weir/ports/video_source.hpp"
#include "weir/worker/attention.hpp"
#include "weir/zone/detection.hpp"

#include <deque>
#include <mutex>
#include <optional>

namespace weir::worker {

using event::StreamState;

// Pictures a second over the last few seconds; where they come more rarely than that, by the last interval.
class RateMeter {
 public:
  void count(Instant at);
  double rate(Instant now) const;

 private:
  static constexpr Duration kWindow = 5s;
  static constexpr size_t kMost = 512;
  std::deque<Instant> arrivals_;
};

struct CameraView {
  // Since the camera was taken on: how far its pictures came, how often it was dialled, and how often that failed.
  struct Counts {
    std::int64_t received = 0, decoded = 0, considered = 0;
    std::int64_t open = 0;  // something moved in it
    std::int64_t inferred = 0, dropped = 0;
    std::int64_t dials = 0, errors = 0;
  };
  StreamState state = StreamState::connecting;  // also while it waits for its turn to dial
  Instant taken_on{};
  std::optional<Instant> last_frame = {};
  std::optional<WallTime> last_frame_at = {};
  double fps = 0;
  std::optional<Attention::Rates> attention = {};  // how often it is looked at, and should be; not known at first
  bool behind = false;                             // that is too seldom
  Counts counts = {};
  StreamFacts facts = {};
  std::optional<camera::FrameSize> main_size = {};  // of the main stream, on which people draw zones
  std::string decoding = {};           // "full", "keyframes"
  double keyframe_interval_s = 0;      // 0: unknown
  std::optional<restart::StreamError> error = {};
  Instant retry_at{};
  std::optional<restart::StreamError> blind = {};  // its stream is there, its model fails
  Instant model_retry_at{};
  std::vector<Detection> detections = {};
  std::optional<WallTime> detected_at = {};
  PicturePtr latest = {};
};

class CameraStatus {
 public:
  explicit CameraStatus(Instant taken_on = {}) { view_.taken_on = taken_on; }
  // Calls `change` with the record under its lock.
  template <class Change>
  void update(Change change) {
    std::lock_guard guard(mutex_);
    change(view_);
  }
  void received(Instant at, WallTime captured);
  // Calls `count` with the record of how often it is looked at, under its lock.
  template <class Count>
  void attend(Count count) {
    std::lock_guard guard(mutex_);
    count(attention_);
  }
  // Whether the camera has fallen behind, or caught up, since the last call.
  bool judge(Instant now, double max_fps);
  // A copy; `fps` and ages are as of `now`.
  CameraView view(Instant now) const;
  PicturePtr latest() const;

 private:
  mutable std::mutex mutex_;
  CameraView view_;
  RateMeter meter_;
  Attention attention_;
};

}  // namespace weir::worker
