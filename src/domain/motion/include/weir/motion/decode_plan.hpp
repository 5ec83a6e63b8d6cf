// DecodePlan: which packets of a camera are decoded, so that a scene where nothing moves costs next to nothing and
// nothing that moves is missed.
//
// While the scene is still, only key packets are decoded, each alone; the others are kept. When a key packet shows
// motion, everything since the key packet before it is decoded after the fact, and decoding goes on in full until the
// scene is still again. Motion is thus seen late by at most one keyframe interval. This pays only where keyframes are
// frequent: elsewhere, and until the interval is known, everything is decoded.
//
// The plan holds no packet. Its shell does what a Step says, in the order of its fields, and reports whether the
// pictures showed motion:
//
//   carry_out(plan.on_packet({packet->key, packet->stream_time, packet->bytes()}), packet);
//   for each picture that came out, except in a replay those of packets that had been decoded alone:
//     carry_out(plan.on_motion(moved, picture->stream_time), nullptr);
//   where a key packet that was decoded alone gave none:
//     carry_out(plan.on_no_picture(), packet);
//
// A camera whose motion gate is off is decoded in full or by keyframes; adaptive needs a verdict on each picture.
// Pure, but for its own state; one thread only.
#pragma once

#include "weir/base/time.hpp"
#include "weir/camera/config.hpp"

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

namespace weir::motion {

struct DecodePlanConfig {
  camera::Decode mode = camera::Decode::adaptive;
  Duration keyframe_max = 1s;       // adaptive applies up to this interval
  double keyframe_slack = 1.15;     // of a camera that does not keep its interval exactly
  Duration key_wait_max = 2s;       // without a key packet, adaptive decodes in full
  Duration key_wait_long = 12s;     // without any key packet yet, keyframes-only does so too: the stream has none
  Duration still_after = 2s;        // without motion, and at least two keyframe intervals
  size_t kept_packets_max = 256;
  size_t kept_bytes_max = 8 << 20;
  friend bool operator==(const DecodePlanConfig&, const DecodePlanConfig&) = default;
};

enum class DecodeAs {
  nothing,
  alone,   // this key packet by itself
  full,    // this packet in the running decoder
};

// What the shell does now, in this order.
struct Step {
  size_t forget = 0;   // as many kept packets from the front
  bool keep = false;   // this packet, behind the others
  bool replay = false; // restart the decoder, decode all kept packets in order, keep none
  DecodeAs decode = DecodeAs::nothing;  // this packet
  friend bool operator==(const Step&, const Step&) = default;
};

class DecodePlan {
 public:
  struct Packet {
    bool key = false;
    Duration stream_time{};
    size_t bytes = 0;
  };

  explicit DecodePlan(const DecodePlanConfig& config) : config_(config) {}

  Step on_packet(const Packet& packet);
  // A picture of `stream_time` showed motion or not; the verdict on a key packet may come after later packets.
  Step on_motion(bool moved, Duration stream_time);
  // A key packet that was decoded alone gave no picture. One such packet may be damaged; two in a row are of a stream
  // whose key packets are no pictures by themselves, as where each field is coded alone. Only the running decoder can
  // tell whether such a stream is decodable.
  Step on_no_picture();
  // Decodes the kept packets after all, whatever they show: the stream has ended, or is to be decoded in another way.
  Step catch_up() { return go_full({}); }
  // A new connection: nothing is known of the stream, and nothing is kept.
  void reset() { *this = DecodePlan(config_); }

  // Whether only key packets are being decoded.
  bool still() const { return still_; }
  size_t kept_packets() const { return kept_packets_; }
  // The largest of the last few intervals; none before the second key packet.
  std::optional<Duration> keyframe_interval() const;
  // Whether the last few intervals, at least two, were all too long for adaptive decoding: one alone may be a lost
  // packet.
  bool keyframes_rare() const;

 private:
  struct Kept {
    Duration stream_time;
    size_t index;      // among the kept packets
    size_t bytes_before;
  };
  bool frequent(Duration interval) const;
  bool adaptive_applies() const;
  bool long_still(Duration now) const;
  Step keep_or_flee(const Packet& packet);
  Step go_full(Step step);
  Step by_keyframes(const Packet& packet);

  DecodePlanConfig config_;
  std::deque<Duration> intervals_ = {};
  std::optional<Duration> last_key_ = {};
  Duration key_or_start_{};              // the last key packet, or the first packet of all
  std::optional<Duration> moved_at_ = {};
  bool still_ = false;
  bool full_only_ = false;               // a group did not fit, or key packets are no pictures
  int blanks_ = 0;                       // key packets in a row that gave no picture
  size_t kept_packets_ = 0, kept_bytes_ = 0;
  std::vector<Kept> kept_keys_ = {};
};

}  // namespace weir::motion
