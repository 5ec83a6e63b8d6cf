// Attention: whether a camera is looked at as often as it should be.
//
// Wanted is every picture that was due (`max_fps`) while something moved; looked at are those that went through the
// detector. A still scene wants nothing, so nothing is missing there. Two things cost pictures: a detector that is busy
// when the next one comes, and a camera's thread that never has to wait for its camera, because it decodes more slowly
// than the camera sends; what such a thread never saw is counted by the camera's own rate. A camera falls behind when too
// few were looked at over the whole window and still are in its last half, so that a model which takes seconds to load
// raises no alarm. Plain value; code that shares it locks it.
#pragma once

#include "weir/base/time.hpp"

#include <array>
#include <cstdint>
#include <optional>

namespace weir::worker {

class Attention {
 public:
  static constexpr int kWindowS = 10;
  static constexpr int kSaidOverS = 5, kKnownAfterS = 3;

  struct Rates {
    double wanted = 0, looked = 0;  // pictures a second
    friend bool operator==(const Rates&, const Rates&) = default;
  };

  // A stream begins: what was counted on an earlier connection says nothing about it.
  void begin(Instant now);
  void due(Instant now, bool moves);
  void looked(Instant now);
  void waited(Instant now, Duration for_a_packet);

  // Over the last whole seconds; `camera_fps`: what it would be looked at if every picture were, 0 where unknown.
  Rates rates(Instant now, double camera_fps, int last_s = kWindowS) const;
  // The rates that may be shown now; nothing until a few seconds have been counted.
  std::optional<Rates> known(Instant now, double camera_fps) const;
  // Follows the rates; true while the camera is looked at less often than wanted.
  bool judge(Instant now, double camera_fps);
  bool behind() const { return behind_; }

 private:
  struct Second {
    std::int64_t at = -1;
    int due = 0, wanted = 0, looked = 0;
    Duration waited{};
  };
  static std::int64_t second_of(Instant at) { return std::chrono::floor<std::chrono::seconds>(at.time_since_epoch()).count(); }
  Second& second(Instant at);
  // How many whole seconds have been counted, at most `most`.
  int counted(Instant now, int most) const;

  std::array<Second, kWindowS + 2> seconds_ = {};
  std::int64_t began_ = 0;  // the first whole second
  bool behind_ = false;
};

}  // namespace weir::worker
