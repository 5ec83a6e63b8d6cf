// Stamps: the times under which packets leave, made from those under which they came.
//
// An RTSP stream tells when a picture is shown, not when it is decoded, starts anywhere, and starts anew with every
// connection. What leaves starts at zero and never runs backwards, for as long as the destination's connection lives;
// an input that was away goes on as much later as it was away. A track whose times jump goes on one step after its
// last packet. A stream whose pictures overtake each other more than it announced is shown that much later from then
// on. Pure; one thread.
#pragma once

#include "weir/base/time.hpp"

#include <array>
#include <optional>
#include <set>

namespace weir::forward {

enum class Track { video, audio };

struct Stamp {
  Duration dts{}, pts{};
};

class Stamps {
 public:
  // A connection of the input begins. `reorder` is how many pictures may come before one that is shown earlier, `step`
  // what lies between two pictures, `sound_step` between two packets of sound.
  void begin_input(int reorder, Duration step, Instant now, Duration sound_step = 21333us);
  // The next packet of a track. `pts` as the input says it.
  Stamp at(Track track, std::optional<Duration> pts, Instant now);

 private:
  struct Lane {
    std::optional<Duration> offset = {};  // from the input's time to ours, for this connection of the input
    Duration latest{}, dts{};
  };
  Duration shown_at(Lane& lane, std::optional<Duration> pts, Duration step);
  Stamp picture_at(Duration pts);
  void grow(int reorder);

  std::array<Lane, 2> lanes_;
  std::optional<Duration> common_ = {};  // the offset that both tracks begin with, so that they stay in step
  Duration begin_at_{};                  // where this connection of the input begins
  Instant last_seen_{};
  bool seen_ = false;
  // Video only.
  int reorder_ = 0;
  Duration step_ = 40ms, sound_step_ = 21333us;
  std::multiset<Duration> recent_;  // when the last pictures are shown
};

}  // namespace weir::forward
