#include "weir/zone/judge.hpp"

#include <gtest/gtest.h>

namespace weir::zone {
namespace {

using camera::Config;
using camera::Zone;
using camera::ZoneKind;
using camera::ZoneTest;
using Ids = std::vector<std::int64_t>;

const std::vector<camera::Point> kLeft = {{0, 0}, {50, 0}, {50, 100}, {0, 100}};
const std::vector<camera::Point> kRight = {{50, 0}, {100, 0}, {100, 100}, {50, 100}};
const std::vector<camera::Point> kAll = {{0, 0}, {100, 0}, {100, 100}, {0, 100}};

Zone zone(std::int64_t id, ZoneKind kind, std::vector<camera::Point> polygon, int priority = 100) {
  return Zone{id, "", kind, priority, std::move(polygon)};
}
Zone include(std::int64_t id, std::vector<camera::Point> polygon, int priority = 100) {
  return zone(id, ZoneKind::include, std::move(polygon), priority);
}
Zone exclude(std::int64_t id, std::vector<camera::Point> polygon, int priority = 100) {
  return zone(id, ZoneKind::exclude, std::move(polygon), priority);
}

Detection person(Box box, double score = 0.5) { return {"person", score, box}; }
const Detection kLeftPerson = person({10, 10, 30, 60});

// The zones of a detection that passed in a picture of 100x100; nothing where it was dropped.
std::optional<Ids> verdict(const Config& config, const Detection& d, int width = 100, int height = 100) {
  auto passed = judge({d}, config, width, height);
  return passed.empty() ? std::nullopt : std::optional(passed.front().zone_ids);
}

Config with(std::vector<Zone> zones) {
  Config config;
  config.zones = std::move(zones);
  return config;
}

TEST(Judge, WithoutZones_CameraLabelsAndScoreDecide) {
  Config config;
  EXPECT_EQ(verdict(config, person({0, 0, 10, 10}, 0.30)), Ids{});
  EXPECT_EQ(verdict(config, person({0, 0, 10, 10}, 0.29)), std::nullopt);
  config.allow_labels = {"car", "person"};
  EXPECT_EQ(verdict(config, kLeftPerson), Ids{});
  config.allow_labels = {"car"};
  EXPECT_EQ(verdict(config, kLeftPerson), std::nullopt);
  config.allow_labels.emplace();
  EXPECT_EQ(verdict(config, kLeftPerson), std::nullopt) << "an empty list allows nothing";
}

TEST(Judge, AnIncludeZoneMustBeMatched_WhereThereIsOne) {
  EXPECT_EQ(verdict(with({include(1, kLeft)}), kLeftPerson), Ids{1});
  EXPECT_EQ(verdict(with({include(1, kRight)}), kLeftPerson), std::nullopt);
  EXPECT_EQ(verdict(with({exclude(1, kRight)}), kLeftPerson), Ids{}) << "exclude zones alone leave the rest";
  EXPECT_EQ(verdict(with({exclude(1, kLeft)}), kLeftPerson), std::nullopt);
}

TEST(Judge, TheHighestPriorityDecides_AndExcludeAmongEquals) {
  EXPECT_EQ(verdict(with({include(1, kAll, 10), exclude(2, kLeft, 20)}), kLeftPerson), std::nullopt);
  EXPECT_EQ(verdict(with({include(1, kAll, 20), exclude(2, kLeft, 10)}), kLeftPerson), Ids{1});
  EXPECT_EQ(verdict(with({include(1, kAll, 10), exclude(2, kLeft, 10)}), kLeftPerson), std::nullopt);
  EXPECT_EQ(verdict(with({include(1, kAll, 10), exclude(2, kRight, 20)}), kLeftPerson), Ids{1});
}

TEST(Judge, NamesAllMatchingIncludeZones_ByFallingPriority) {
  auto config = with(
      {include(1, kAll, 5), include(2, kRight, 90), include(3, kLeft, 50), exclude(4, kAll, 20), include(5, kAll, 50)});
  EXPECT_EQ(verdict(config, kLeftPerson), (Ids{3, 5, 1}));
}

TEST(Judge, ForgetsZoneIdsThatADetectionCameWith) {
  Detection d = kLeftPerson;
  d.zone_ids = {77};
  EXPECT_EQ(verdict(Config{}, d), Ids{});
}

TEST(Judge, AZonesLabelsNarrowIt) {
  Zone cars = include(1, kAll);
  cars.allow_labels = {"car"};
  EXPECT_EQ(verdict(with({cars}), kLeftPerson), std::nullopt);
  EXPECT_EQ(verdict(with({cars, include(2, kLeft)}), kLeftPerson), Ids{2});
  Zone no_cars = exclude(3, kAll);
  no_cars.allow_labels = {"car"};
  EXPECT_EQ(verdict(with({no_cars}), kLeftPerson), Ids{}) << "an exclude zone for cars leaves people";
  Config camera_without = with({cars});
  camera_without.allow_labels = {"person"};
  EXPECT_EQ(verdict(camera_without, {"car", 0.9, {10, 10, 30, 60}}), std::nullopt)
      << "a zone cannot allow what the camera does not";
}

TEST(Judge, AZonesOwnScoreReplacesTheCameras_LowerOrHigher) {
  Zone low = include(1, kLeft), high = include(2, kRight), plain = include(3, kAll, 1);
  low.min_score = 0.25;
  high.min_score = 0.6;
  EXPECT_EQ(verdict(with({low}), person({10, 10, 30, 60}, 0.26)), Ids{1});
  EXPECT_EQ(verdict(with({low}), person({10, 10, 30, 60}, 0.24)), std::nullopt);
  EXPECT_EQ(verdict(with({high}), person({60, 10, 80, 60}, 0.5)), std::nullopt);
  EXPECT_EQ(verdict(with({high, plain}), person({60, 10, 80, 60}, 0.5)), Ids{3}) << "the other zone still takes it";
}

TEST(Judge, AnExcludeZoneExcludesAtEveryScore_UnlessItHasItsOwn) {
  Zone low = include(1, kAll, 1), out = exclude(2, kLeft, 9);
  low.min_score = 0.1;
  EXPECT_EQ(verdict(with({low, out}), person({10, 10, 30, 60}, 0.2)), std::nullopt);
  out.min_score = 0.5;
  EXPECT_EQ(verdict(with({low, out}), person({10, 10, 30, 60}, 0.2)), Ids{1});
  EXPECT_EQ(verdict(with({low, out}), person({10, 10, 30, 60}, 0.5)), std::nullopt);
}

TEST(Judge, CenterAndBottomCenterLookAtTheirPoints) {
  auto low = with({include(1, {{0, 50}, {100, 50}, {100, 100}, {0, 100}})});
  Detection standing = person({10, 10, 30, 60});  // centre at 35, feet at 60
  low.zone_test = ZoneTest::center;
  EXPECT_EQ(verdict(low, standing), std::nullopt);
  low.zone_test = ZoneTest::bottom_center;
  EXPECT_EQ(verdict(low, standing), Ids{1});
  EXPECT_EQ(verdict(low, person({10, 10, 30, 50})), Ids{1}) << "feet exactly on the edge";
  EXPECT_EQ(verdict(low, person({10, 10, 30, 49.9})), std::nullopt);
}

TEST(Judge, IouComparesCommonAreaWithThatOfBoth) {
  auto config = with({include(1, kLeft)});  // 50x100
  config.zone_test = ZoneTest::iou;
  config.iou_threshold = 0.25;
  EXPECT_EQ(verdict(config, person({0, 0, 50, 25})), Ids{1}) << "1250 of 5000, exactly the threshold";
  EXPECT_EQ(verdict(config, person({0, 0, 50, 24.9})), std::nullopt);
  EXPECT_EQ(verdict(config, person({25, 0, 75, 100})), Ids{1}) << "2500 of 7500";
  config.iou_threshold = 0.34;
  EXPECT_EQ(verdict(config, person({25, 0, 75, 100})), std::nullopt);
  config.iou_threshold = 0;
  EXPECT_EQ(verdict(config, person({50, 0, 75, 100})), std::nullopt) << "touching is not overlapping";
}

TEST(Judge, PolygonsStretchFromTheConfiguredFrameToThePicture) {
  auto config = with({include(1, kLeft)});
  config.frame_size = camera::FrameSize{100, 100};
  // The same place in pictures of other sizes and shapes.
  EXPECT_EQ(verdict(config, person({60, 40, 100, 100}), 200, 400), Ids{1});
  EXPECT_EQ(verdict(config, person({102, 40, 120, 100}), 200, 400), std::nullopt);
  EXPECT_EQ(verdict(config, person({24, 1, 28, 10}), 50, 25), std::nullopt);
  config.zone_test = ZoneTest::bottom_center;
  config.frame_size = camera::FrameSize{1920, 1080};
  config.zones[0].polygon = {{0, 540}, {1920, 540}, {1920, 1080}, {0, 1080}};
  for (int height : {7, 352, 577, 704, 1079, 2161})
    EXPECT_EQ(verdict(config, person({0, 0, 10, double(height)}), 704, height), Ids{1}) << "at the edge of " << height;
}

TEST(Judge, LeastScoreIsTheLowestThatCanPass) {
  Config config;
  EXPECT_EQ(least_score(config), 0.30);
  config.zones = {exclude(1, kAll)};
  config.zones[0].min_score = 0.05;
  EXPECT_EQ(least_score(config), 0.30) << "an exclude zone lets nothing in";
  config.zones.push_back(include(2, kLeft));
  EXPECT_EQ(least_score(config), 0.30);
  config.zones[1].min_score = 0.8;
  EXPECT_EQ(least_score(config), 0.8);
  config.zones.push_back(include(3, kRight));
  config.zones[2].min_score = 0.2;
  EXPECT_EQ(least_score(config), 0.2);
}

}  // namespace
}  // namespace weir::zone
