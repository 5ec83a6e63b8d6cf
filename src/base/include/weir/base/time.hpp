// Three times that must never be mixed, so each has a type of its own.
//
//   Instant    a point on this machine's CLOCK_BOOTTIME: deadlines, intervals. Never leaves the machine.
//   WallTime   UTC, for people: logs, `expires_at`, tokens. Never decides who owns what.
//   LeaseTime  the store's own time, which stands still while the store is away (docs/lease-protocol.md).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace weir {

using Duration = std::chrono::microseconds;
using namespace std::chrono_literals;

struct BootTimeline {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootTimeline>;
  static constexpr bool is_steady = true;
};
struct LeaseTimeline {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<LeaseTimeline>;
  static constexpr bool is_steady = false;
};

using Instant = BootTimeline::time_point;
using LeaseTime = LeaseTimeline::time_point;
using WallTime = std::chrono::time_point<std::chrono::system_clock, Duration>;

inline double seconds(Duration d) { return std::chrono::duration<double>(d).count(); }
inline Duration from_seconds(double s) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s));
}

// "2026-01-31T09:05:07.123Z": UTC, ISO-8601, milliseconds.
std::string to_iso(WallTime time);
// The same to the microsecond, for a time that must not be rounded down: events up to it must not be sent again.
std::string to_iso_exact(WallTime time);
std::optional<WallTime> from_iso(std::string_view text);

// "15m", "90s", "2h", "500ms", or plain seconds.
std::optional<Duration> parse_duration(std::string_view text);

}  // namespace weir
