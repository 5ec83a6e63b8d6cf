#include "weir/motion/decode_plan.hpp"

#include <algorithm>

namespace weir::motion {

namespace {
constexpr size_t kIntervals = 4;
}  // namespace

std::optional<Duration> DecodePlan::keyframe_interval() const {
  if (intervals_.empty()) return std::nullopt;
  return *std::max_element(intervals_.begin(), intervals_.end());
}

bool DecodePlan::frequent(Duration interval) const {
  return seconds(interval) <= seconds(config_.keyframe_max) * config_.keyframe_slack;
}

bool DecodePlan::keyframes_rare() const {
  return intervals_.size() >= 2 && std::ranges::none_of(intervals_, [this](Duration each) { return frequent(each); });
}

bool DecodePlan::adaptive_applies() const {
  auto interval = keyframe_interval();
  return interval && !full_only_ && frequent(*interval);
}

bool DecodePlan::long_still(Duration now) const {
  return now - *moved_at_ >= std::max(config_.still_after, 2 * *keyframe_interval());
}

Step DecodePlan::on_packet(const Packet& packet) {
  if (!moved_at_) moved_at_ = key_or_start_ = packet.stream_time;
  if (packet.key) {
    if (last_key_) intervals_.push_back(packet.stream_time - *last_key_);
    if (intervals_.size() > kIntervals) intervals_.pop_front();
    last_key_ = key_or_start_ = packet.stream_time;
  }
  if (config_.mode == camera::Decode::keyframes) return by_keyframes(packet);
  if (config_.mode == camera::Decode::full) return {.decode = DecodeAs::full};
  if (!still_ && packet.key && adaptive_applies() && long_still(packet.stream_time)) still_ = true;
  return still_ ? keep_or_flee(packet) : Step{.decode = DecodeAs::full};
}

// Still: a key packet is looked at, everything is kept until a key packet proved that nothing moved before it.
Step DecodePlan::keep_or_flee(const Packet& packet) {
  if (packet.key) kept_keys_.push_back({packet.stream_time, kept_packets_, kept_bytes_});
  ++kept_packets_;
  kept_bytes_ += packet.bytes;
  bool overdue = packet.stream_time - key_or_start_ > config_.key_wait_max || !adaptive_applies();
  bool overfull = kept_packets_ > config_.kept_packets_max || kept_bytes_ > config_.kept_bytes_max;
  if (overfull) full_only_ = true;
  if (overdue || overfull) return go_full({.keep = true});
  return {.keep = true, .decode = packet.key ? DecodeAs::alone : DecodeAs::nothing};
}

Step DecodePlan::on_motion(bool moved, Duration stream_time) {
  blanks_ = 0;
  if (!moved_at_) return {};
  if (moved) moved_at_ = std::max(*moved_at_, stream_time);
  if (!still_) return {};
  if (moved) return go_full({});
  // Everything before the key packet that showed nothing is proven to be still.
  auto proven = std::find_if(kept_keys_.rbegin(), kept_keys_.rend(),
                             [&](const Kept& key) { return key.stream_time <= stream_time; });
  if (proven == kept_keys_.rend()) return {};
  auto [time, index, bytes_before] = *proven;
  kept_keys_.erase(kept_keys_.begin(), std::prev(proven.base()));
  for (Kept& key : kept_keys_) key.index -= index, key.bytes_before -= bytes_before;
  kept_packets_ -= index;
  kept_bytes_ -= bytes_before;
  return {.forget = index};
}

Step DecodePlan::on_no_picture() {
  if (++blanks_ < 2) return {};
  full_only_ = true;
  Step step = go_full({});
  if (!step.replay) step.decode = DecodeAs::full;  // nothing is kept by keyframes: it begins with this one
  return step;
}

Step DecodePlan::go_full(Step step) {
  step.replay = kept_packets_ > 0;
  still_ = false;
  kept_packets_ = kept_bytes_ = 0;
  kept_keys_.clear();
  return step;
}

Step DecodePlan::by_keyframes(const Packet& packet) {
  if (full_only_) return {.decode = DecodeAs::full};
  // A stream without key packets builds its pictures up piece by piece, from wherever decoding starts. In a stream
  // that has shown a key packet, the packets between two of them would be decoded without the pictures to which they
  // refer.
  still_ = last_key_ || packet.stream_time - key_or_start_ <= config_.key_wait_long;
  if (packet.key) return {.decode = DecodeAs::alone};
  return {.decode = still_ ? DecodeAs::nothing : DecodeAs::full};
}

}  // namespace weir::motion
