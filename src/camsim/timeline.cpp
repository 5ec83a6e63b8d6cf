#include "weir/camsim/timeline.hpp"

namespace weir::camsim {

namespace {

constexpr std::int64_t kMicros = 1'000'000;

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

}  // namespace

std::int64_t Timeline::running_at(WallTime time) const {
  return floor_div((time.time_since_epoch() + phase).count() * fps, kMicros);
}

WallTime Timeline::captured(std::int64_t running) const {
  return WallTime(Duration(-floor_div(-running * kMicros, fps)) - phase);  // rounded up: running_at gives it back
}

int Timeline::in_loop(std::int64_t running) const {
  return static_cast<int>(running - floor_div(running, frames) * frames);
}

Stamp Timeline::stamp(int number) const { return {number, static_cast<int>(std::int64_t{1000} * number / fps)}; }

Duration phase_of(std::string_view camera_name) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (char c : camera_name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return Duration(static_cast<std::int64_t>((hash ^ hash >> 32) % 3'600'000) * 1000);  // up to an hour, whole ms
}

Capture capture_time(const Stamp& stamp, const Timeline& timeline, WallTime near) {
  std::int64_t now = timeline.running_at(near);
  std::int64_t ahead = timeline.in_loop(stamp.number - timeline.in_loop(now));  // 0 … frames - 1
  std::int64_t running = now + (ahead * 2 > timeline.frames ? ahead - timeline.frames : ahead);
  return {timeline.captured(running), running};
}

}  // namespace weir::camsim
