// Interleaver: puts the packets of two tracks into one order of decoding times that never falls.
//
// A picture leaves at once, after the sound that comes before it; sound waits until the pictures have got as far, or for
// a moment where they do not go on. A packet that comes too late leaves under the time of the packet that left last.
// Pure; one thread.
#pragma once

#include "weir/forward/stamps.hpp"

#include <deque>
#include <optional>
#include <utility>

namespace weir::forward {

template <class T>
class Interleaver {
 public:
  static constexpr Duration kPatience = 500ms;
  struct Item {
    Track track;
    Stamp stamp;
    Instant arrived;
    T what;
  };
  // Without both tracks nothing waits.
  explicit Interleaver(bool both) : both_(both) {}

  void push(Item item) {
    if (item.track == Track::video && (!reached_ || item.stamp.dts > *reached_)) reached_ = item.stamp.dts;
    (item.track == Track::video ? pictures_ : sound_).push_back(std::move(item));
  }
  // The next packet that may leave now.
  std::optional<Item> pop(Instant now) {
    bool sound_first = !sound_.empty() && (pictures_.empty() || sound_.front().stamp.dts <= pictures_.front().stamp.dts);
    if (sound_first && !may_leave(sound_.front(), now)) return std::nullopt;
    std::deque<Item>& from = sound_first ? sound_ : pictures_;
    if (from.empty()) return std::nullopt;
    Item item = std::move(from.front());
    from.pop_front();
    Duration later = std::max(last_ - item.stamp.dts, Duration{0});
    item.stamp.dts += later;
    item.stamp.pts += later;
    last_ = item.stamp.dts;
    return item;
  }
  void clear() {
    pictures_.clear();
    sound_.clear();
  }

 private:
  bool may_leave(const Item& item, Instant now) const {
    return !both_ || (reached_ && item.stamp.dts <= *reached_) || now - item.arrived >= kPatience;
  }
  const bool both_;
  std::deque<Item> pictures_, sound_;
  std::optional<Duration> reached_ = {};
  Duration last_{};
};

}  // namespace weir::forward
