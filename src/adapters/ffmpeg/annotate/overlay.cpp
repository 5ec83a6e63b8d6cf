#include "overlay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace weir::ffmpeg {

namespace {

// Told apart at a glance, on light ground and on dark.
constexpr Colour kColours[] = {{173, 42, 26},   // green
                               {169, 166, 16},  // cyan
                               {106, 202, 222}, // magenta
                               {210, 16, 146},  // yellow
                               {130, 60, 190},  // orange
                               {90, 200, 110}}; // blue

Colour colour_of(const std::string& label) {
  unsigned sum = 5381;
  for (unsigned char c : label) sum = sum * 33 + c;
  return kColours[sum % std::size(kColours)];
}

std::string time_text(WallTime time) {
  std::string iso = to_iso(time);
  return fmt::format("{} {} UTC", iso.substr(0, 10), iso.substr(11, 8));
}

void draw_detection(Canvas& canvas, const Detection& detection, double wider, double taller, int scale) {
  auto at = [](double value, double by) { return static_cast<int>(std::lround(value * by)); };
  int x1 = at(detection.box.x1, wider), x2 = at(detection.box.x2, wider);
  int y1 = at(detection.box.y1, taller), y2 = at(detection.box.y2, taller);
  canvas.outline({x1, y1, x2 - x1, y2 - y1}, colour_of(detection.label), scale + 1);
  int above = y1 - Canvas::label_height(scale);
  canvas.label(x1, above >= 0 ? above : y1, fmt::format("{} {:.2f}", detection.label, detection.score), scale);
}

}  // namespace

void draw_overlay(Canvas& canvas, const Sighting* sighting, WallTime time) {
  int scale = std::max(1, canvas.height() / 360);
  if (sighting != nullptr && sighting->width > 0 && sighting->height > 0) {
    double wider = 1.0 * canvas.width() / sighting->width, taller = 1.0 * canvas.height() / sighting->height;
    for (const Detection& each : sighting->detections) draw_detection(canvas, each, wider, taller, scale);
  }
  canvas.label(4 * scale, canvas.height() - Canvas::label_height(scale) - 4 * scale, time_text(time), scale);
}

}  // namespace weir::ffmpeg
