#include "weir/camera/advice.hpp"

#include "weir/base/spelling.hpp"

#include <algorithm>
#include <cmath>

namespace weir::camera {

namespace {

// A zone that is smaller than both catches nothing: a detection's middle hardly ever falls into it.
constexpr double kTinyPixels = 100, kTinyShare = 0.001;
constexpr double kInsideShareMin = 0.5;
constexpr size_t kPointsShown = 12;
constexpr size_t kNearestMax = 3;  // of one camera: comparing a label with all others takes time

struct Bounds {
  double x1, y1, x2, y2;
  double width() const { return x2 - x1; }
  double height() const { return y2 - y1; }
};

Bounds bounds_of(const std::vector<Point>& polygon) {
  Bounds b{polygon[0][0], polygon[0][1], polygon[0][0], polygon[0][1]};
  for (const Point& p : polygon)
    b = {std::min(b.x1, p[0]), std::min(b.y1, p[1]), std::max(b.x2, p[0]), std::max(b.y2, p[1])};
  return b;
}

std::string title(const Zone& zone) {
  return zone.name.empty() ? fmt::format("zone {}", zone.zone_id)
                           : fmt::format("zone {} ({})", zone.zone_id, zone.name);
}

// What to write for a polygon whose coordinates are shares of the picture.
std::string in_pixels(const std::vector<Point>& polygon, const std::optional<FrameSize>& picture) {
  if (!picture || polygon.size() > kPointsShown)
    return "multiply each x by the width of the picture and each y by its height";
  std::string points;
  for (const Point& p : polygon)
    points +=
        fmt::format("{}[{:.0f},{:.0f}]", points.empty() ? "" : ",", p[0] * picture->width, p[1] * picture->height);
  return fmt::format("in a picture of {}x{} the same place is [{}]", picture->width, picture->height, points);
}

constexpr std::string_view kDrawnOnAnother =
    "draw it inside the picture, or set frame_size to the size of the picture that it was drawn on";

std::optional<Warning> judge_polygon(const Zone& zone, const std::optional<FrameSize>& picture) {
  if (zone.polygon.empty()) return std::nullopt;
  Bounds b = bounds_of(zone.polygon);
  double covered = b.width() * b.height();
  double whole = picture ? double(picture->width) * picture->height : kTinyPixels / kTinyShare;
  if (covered < std::min(kTinyPixels, kTinyShare * whole)) {
    if (b.x2 <= 1 && b.y2 <= 1)
      return Warning{"zone_relative", "polygon",
                     fmt::format("{} has coordinates between 0 and 1, but a polygon is in pixels, so it covers one "
                                 "pixel in the picture's corner; {}",
                                 title(zone), in_pixels(zone.polygon, picture))};
    return Warning{"zone_tiny", "polygon",
                   fmt::format("{} is {:.3g} pixels wide and {:.3g} high, so that hardly anything can lie in it; draw "
                               "it as large as the place that is meant",
                               title(zone), b.width(), b.height())};
  }
  if (!picture) return std::nullopt;
  double inside = std::max(0.0, std::min<double>(b.x2, picture->width) - b.x1) *
                  std::max(0.0, std::min<double>(b.y2, picture->height) - b.y1);
  if (inside >= kInsideShareMin * covered) return std::nullopt;
  std::string where = fmt::format("it spans x {:.6g} to {:.6g} and y {:.6g} to {:.6g}, the picture is {}x{}", b.x1,
                                  b.x2, b.y1, b.y2, picture->width, picture->height);
  if (inside <= 0)
    return Warning{"zone_outside", "polygon",
                   fmt::format("{} lies outside the picture, so nothing can lie in it: {}; {}", title(zone), where,
                               kDrawnOnAnother)};
  return Warning{"zone_partly_outside", "polygon",
                 fmt::format("only {:.0f} % of {} lies in the picture: {}; {}", std::max(1.0, 100 * inside / covered),
                             title(zone), where, kDrawnOnAnother)};
}

// ---- labels ----

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return c < 0x80 ? std::tolower(c) : c; });
  return out;
}

std::string model_title(const Model& model) {
  return model.name.empty() ? fmt::format("the {} model", model.detector) : fmt::format("the model {}", model.name);
}

std::string list_command(const Model& model) {
  if (!model.name.empty()) return "weir model labels " + model.name;
  return model.detector == Model{}.detector ? "weir model labels" : "weir model labels " + model.detector;
}

using Labels = std::optional<std::vector<std::string>>;
void judge_labels(const Labels& labels, const std::string& whose, const Config& config, const Facts& facts,
                  std::vector<Warning>& out) {
  if (!labels || facts.labels == nullptr) return;
  for (size_t i = 0; i < labels->size() && out.size() < kWarningsMax; ++i) {
    const std::string& label = (*labels)[i];
    if (std::ranges::binary_search(*facts.labels, label)) continue;
    std::string meant = out.size() < kNearestMax ? nearest_label(label, *facts.labels) : "";
    std::string advice = meant.empty() ? "" : fmt::format("did you mean \"{}\"? ", meant);
    if (!meant.empty() && lower(meant) == lower(label)) advice = fmt::format("write \"{}\"; ", meant);
    out.push_back({"label_unknown", fmt::format("allow_labels[{}]", i),
                   fmt::format("{} \"{}\", a label that {} does not have, so nothing is ever detected under it; {}"
                               "all its labels: {}", whose, label, model_title(config.model), advice,
                               list_command(config.model))});
  }
}

}  // namespace

std::string nearest_label(const std::string& wrong, const std::vector<std::string>& labels) {
  std::string sought = lower(wrong), nearest;
  size_t fewest = sought.size() <= 4 ? 2 : 3;  // one more than is allowed
  for (const std::string& label : labels) {
    if (label.size() + fewest <= sought.size() || sought.size() + fewest <= label.size()) continue;
    size_t slips = slips_between(sought, lower(label));
    if (slips >= fewest) continue;
    fewest = slips;
    nearest = label;
    if (slips == 0) break;
  }
  return nearest;
}

std::vector<Warning> advise_on(const Zone& zone, const Config& config, const Facts& facts) {
  std::vector<Warning> out;
  if (auto warning = judge_polygon(zone, config.frame_size ? config.frame_size : facts.stream))
    out.push_back(*std::move(warning));
  judge_labels(zone.allow_labels, title(zone) + " allows", config, facts, out);
  return out;
}

std::vector<Warning> advise(const Config& config, const Facts& facts) {
  std::vector<Warning> out;
  judge_labels(config.allow_labels, "the camera allows", config, facts, out);
  for (size_t i = 0; i < config.zones.size() && out.size() < kWarningsMax; ++i)
    for (Warning& warning : advise_on(config.zones[i], config, facts)) {
      if (out.size() == kWarningsMax) break;
      warning.field = fmt::format("zones[{}].{}", i, warning.field);
      out.push_back(std::move(warning));
    }
  return out;
}

}  // namespace weir::camera
