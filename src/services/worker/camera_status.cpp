#include "weir/worker/camera_status.hpp"

#include <algorithm>
#include <utility>

namespace weir::worker {

void RateMeter::count(Instant at) {
  arrivals_.push_back(at);
  // The last two stay, however far apart.
  while (arrivals_.size() > kMost || (arrivals_.size() > 2 && arrivals_.front() + kWindow < at)) arrivals_.pop_front();
}

double RateMeter::rate(Instant now) const {
  auto first = arrivals_.begin();
  while (first != arrivals_.end() && *first + kWindow < now) ++first;
  auto count = arrivals_.end() - first;
  if (count < 2) {
    // Pictures that come more rarely than the window shows: the last interval gives the rate, until the next picture
    // is overdue.
    if (arrivals_.size() < 2) return 0;
    Duration last = arrivals_.back() - *(arrivals_.end() - 2);
    return now - arrivals_.back() < 2 * last ? 1 / seconds(last) : 0;
  }
  // n arrivals span n - 1 intervals; the time since the last one counts once it is longer than these were.
  double span = seconds(arrivals_.back() - *first), silence = seconds(now - arrivals_.back());
  double interval = span / static_cast<double>(count - 1);
  return static_cast<double>(count - 1) / (span + std::max(0.0, silence - 2 * interval));
}

void CameraStatus::received(Instant at, WallTime captured) {
  std::lock_guard guard(mutex_);
  meter_.count(at);
  ++view_.counts.received;
  view_.last_frame = at;
  view_.last_frame_at = captured;
}

// A model that fails looks at nothing, and that is reported as MODEL_ERROR, not as falling behind.
bool CameraStatus::judge(Instant now, double max_fps) {
  std::lock_guard guard(mutex_);
  double camera_fps = view_.facts.fps > 0 ? std::min(view_.facts.fps, max_fps) : max_fps;
  bool streams = view_.state == StreamState::streaming;
  view_.attention = streams ? attention_.known(now, camera_fps) : std::nullopt;
  bool behind = attention_.judge(now, camera_fps) && streams && !view_.blind;
  return std::exchange(view_.behind, behind) != behind;
}

CameraView CameraStatus::view(Instant now) const {
  std::lock_guard guard(mutex_);
  CameraView copy = view_;
  copy.fps = meter_.rate(now);
  return copy;
}

PicturePtr CameraStatus::latest() const {
  std::lock_guard guard(mutex_);
  return view_.latest;
}

}  // namespace weir::worker
