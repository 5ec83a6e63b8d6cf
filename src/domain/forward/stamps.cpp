#include "weir/forward/stamps.hpp"

#include <algorithm>
#include <iterator>

namespace weir::forward {

namespace {
constexpr Duration kBack = 1s, kAhead = 10s;  // within this the input is believed
constexpr Duration kApart = 1s;               // and within this two tracks belong together
constexpr int kReorderMax = 16;  // H.264 allows no more
}  // namespace

void Stamps::begin_input(int reorder, Duration step, Instant now, Duration sound_step) {
  Duration latest = std::max({lanes_[0].latest, lanes_[1].latest, lanes_[0].dts, lanes_[1].dts});
  // The first picture is decoded as many steps before it is shown as it may be overtaken.
  reorder_ = std::min(reorder, kReorderMax);
  step_ = step;
  sound_step_ = sound_step;
  begin_at_ = seen_ ? latest + std::max(now - last_seen_, step) : Duration{0};
  begin_at_ += reorder_ * step;
  common_.reset();
  for (Lane& lane : lanes_) lane.offset.reset();
  recent_.clear();
}

Duration Stamps::shown_at(Lane& lane, std::optional<Duration> pts, Duration step) {
  if (!lane.offset) {
    // A track that begins later belongs to where the other one is by now.
    Duration here = std::max({begin_at_, lanes_[0].latest, lanes_[1].latest});
    if (!common_ && pts) common_ = begin_at_ - *pts;
    lane.offset = common_;
    // A track that does not fit there has a clock of its own.
    Duration apart = pts && common_ ? *pts + *common_ - here : Duration{0};
    if (pts && (apart > kApart || apart < -kApart)) lane.offset = here - *pts;
    lane.latest = std::max(lane.latest, here - kApart);
  }
  Duration shown = pts && lane.offset ? *pts + *lane.offset : lane.latest + step;
  if (shown < lane.latest - kBack || shown > lane.latest + kAhead) {
    if (pts) lane.offset = lane.latest + step - *pts;
    shown = lane.latest + step;
  }
  lane.latest = std::max(lane.latest, shown);
  return shown;
}

void Stamps::grow(int reorder) {
  Duration later = (reorder - reorder_) * step_;
  reorder_ = reorder;
  for (Lane& lane : lanes_) {
    if (lane.offset) *lane.offset += later;
    lane.latest += later;
  }
  if (common_) *common_ += later;
  std::multiset<Duration> moved;
  for (Duration each : recent_) moved.insert(each + later);
  recent_ = std::move(moved);
}

// A picture is decoded when the picture is shown that is as many places before it as pictures may overtake each other.
Stamp Stamps::picture_at(Duration pts) {
  auto overtaken = std::min(static_cast<int>(std::distance(recent_.upper_bound(pts), recent_.end())), kReorderMax);
  if (overtaken > reorder_) {
    Duration before = lanes_[0].latest;
    grow(overtaken);
    pts += lanes_[0].latest - before;
  }
  recent_.insert(pts);
  auto known = static_cast<int>(recent_.size());
  if (known <= reorder_) return {*recent_.begin() - (reorder_ + 1 - known) * step_, pts};
  if (known > kReorderMax + 1) recent_.erase(recent_.begin());
  return {*std::next(recent_.rbegin(), reorder_), pts};
}

Stamp Stamps::at(Track track, std::optional<Duration> pts, Instant now) {
  Lane& lane = lanes_[static_cast<size_t>(track)];
  bool video = track == Track::video;
  seen_ = true;
  last_seen_ = now;
  Duration shown = shown_at(lane, pts, video ? step_ : sound_step_);
  Stamp stamp = video ? picture_at(shown) : Stamp{shown, shown};
  lane.dts = std::max({lane.dts, stamp.dts, Duration{0}});
  return {lane.dts, std::max(stamp.pts, lane.dts)};
}

}  // namespace weir::forward
