#include "weir/zone/judge.hpp"

#include "polygon.hpp"

#include <algorithm>

namespace weir::zone {

namespace {

using camera::Zone;
using camera::ZoneKind;

bool allows(const std::optional<std::vector<std::string>>& labels, const std::string& label) {
  return !labels || std::ranges::find(*labels, label) != labels->end();
}

bool includes(const Zone& zone) { return zone.kind == ZoneKind::include; }

double score_needed(const Zone& zone, const camera::Config& config) {
  return zone.min_score.value_or(includes(zone) ? config.min_score : 0);
}

bool lies_in(const Box& box, const Zone& zone, const camera::Config& config) {
  camera::Point place{(box.x1 + box.x2) / 2, (box.y1 + box.y2) / 2};
  switch (config.zone_test) {
    case camera::ZoneTest::center: return contains(zone.polygon, place);
    case camera::ZoneTest::bottom_center: return contains(zone.polygon, {place[0], box.y2});
    case camera::ZoneTest::iou: break;
  }
  double common = common_area(zone.polygon, box);
  double either = (box.x2 - box.x1) * (box.y2 - box.y1) + area(zone.polygon) - common;
  // A threshold of 0 still asks for a common point that has an area.
  return common > 0 && common >= config.iou_threshold * either;
}

// The zones by falling priority; among equals exclude first, so that the first match decides.
std::vector<const Zone*> ranked(const std::vector<Zone>& zones) {
  std::vector<const Zone*> out;
  for (const Zone& zone : zones) out.push_back(&zone);
  std::ranges::stable_sort(out, [](const Zone* a, const Zone* b) {
    return a->priority != b->priority ? a->priority > b->priority : includes(*a) < includes(*b);
  });
  return out;
}

}  // namespace

std::vector<Detection> judge(std::vector<Detection> seen, const camera::Config& config, int width, int height) {
  std::vector<const Zone*> zones = ranked(config.zones);
  bool must_lie_inside = std::ranges::any_of(config.zones, includes);
  camera::FrameSize frame = config.frame_size.value_or(camera::FrameSize{width, height});
  // The box moves into the configured frame, not the polygons into the picture; shares of areas stay as they are.
  // Multiplied first: a box that ends at the picture's edge then ends exactly at the frame's.
  auto across = [&](double x) { return width > 0 ? x * frame.width / width : x; };
  auto down = [&](double y) { return height > 0 ? y * frame.height / height : y; };
  std::erase_if(seen, [&](Detection& d) {
    d.zone_ids.clear();
    if (!allows(config.allow_labels, d.label)) return true;
    Box box{across(d.box.x1), down(d.box.y1), across(d.box.x2), down(d.box.y2)};
    const Zone* decides = nullptr;
    for (const Zone* zone : zones) {
      if (!allows(zone->allow_labels, d.label) || d.score < score_needed(*zone, config)) continue;
      if (!lies_in(box, *zone, config)) continue;
      if (decides == nullptr) decides = zone;
      if (!includes(*decides)) return true;
      if (includes(*zone)) d.zone_ids.push_back(zone->zone_id);
    }
    return decides == nullptr && (must_lie_inside || d.score < config.min_score);
  });
  return seen;
}

double least_score(const camera::Config& config) {
  double least = 1;
  bool any = false;
  for (const Zone& zone : config.zones) {
    if (!includes(zone)) continue;
    least = std::min(least, score_needed(zone, config));
    any = true;
  }
  return any ? least : config.min_score;
}

}  // namespace weir::zone
