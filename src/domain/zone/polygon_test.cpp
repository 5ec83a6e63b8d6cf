#include "polygon.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace weir::zone {
namespace {

using camera::Point;
using Points = std::vector<Point>;

const Points kSquare = {{0, 0}, {10, 0}, {10, 10}, {0, 10}};
const Points kU = {{0, 0}, {3, 0}, {3, 7}, {7, 7}, {7, 0}, {10, 0}, {10, 10}, {0, 10}};  // concave: open at the top
const Points kEight = {{0, 0}, {10, 10}, {10, 0}, {0, 10}};                              // crosses itself at (5,5)
const Points kTouching = {{0, 0}, {5, 5}, {10, 0}, {10, 10}, {5, 5}, {0, 10}};           // two triangles, one point
const Points kSpike = {{0, 0}, {10, 0}, {10, 5}, {20, 5}, {10, 5}, {10, 10}, {0, 10}};   // an edge there and back
const Points kStar = {{50, 0}, {79, 90}, {2, 35}, {98, 35}, {21, 90}};                   // its middle is outside

Points reversed(Points points) {
  std::ranges::reverse(points);
  return points;
}

struct PlaceCase {
  const char* what;
  Points polygon;
  Point point;
  bool inside;
};

TEST(Polygon, ContainsItsInsideEdgesAndCorners) {
  const PlaceCase cases[] = {
      {"middle", kSquare, {5, 5}, true},
      {"left edge", kSquare, {0, 5}, true},
      {"right edge", kSquare, {10, 5}, true},
      {"top edge", kSquare, {5, 0}, true},
      {"bottom edge", kSquare, {5, 10}, true},
      {"first corner", kSquare, {0, 0}, true},
      {"last corner", kSquare, {10, 10}, true},
      {"just outside", kSquare, {10.001, 5}, false},
      {"beside, on a corner's height", kSquare, {-1, 10}, false},
      {"in line with an edge", kSquare, {12, 0}, false},
      {"left arm", kU, {1, 3}, true},
      {"right arm", kU, {9, 3}, true},
      {"between the arms", kU, {5, 3}, false},
      {"on the inner edge", kU, {5, 7}, true},
      {"on the height of inner corners", kU, {1, 7}, true},
      {"upper loop", kEight, {5, 2}, false},
      {"left loop", kEight, {1, 5}, true},
      {"right loop", kEight, {9, 5}, true},
      {"crossing", kEight, {5, 5}, true},
      {"left triangle", kTouching, {1, 5}, true},
      {"above the touch", kTouching, {5, 2}, false},
      {"touch", kTouching, {5, 5}, true},
      {"a star's middle", kStar, {50, 50}, false},
      {"a star's ray", kStar, {50, 10}, true},
      {"on a spike", kSpike, {15, 5}, true},
      {"beside a spike", kSpike, {15, 5.1}, false},
  };
  for (const PlaceCase& c : cases) {
    EXPECT_EQ(contains(c.polygon, c.point), c.inside) << c.what;
    EXPECT_EQ(contains(reversed(c.polygon), c.point), c.inside) << c.what << ", the other way round";
  }
}

struct AreaCase {
  const char* what;
  Points polygon;
  Box box;
  double area;
};

TEST(Polygon, CommonAreaWithABoxIsExact) {
  const AreaCase cases[] = {
      {"box inside", kSquare, {2, 2, 4, 5}, 6},
      {"box around", kSquare, {-5, -5, 20, 20}, 100},
      {"corner", kSquare, {8, 8, 12, 12}, 4},
      {"only an edge in common", kSquare, {10, 0, 12, 10}, 0},
      {"apart", kSquare, {20, 20, 30, 30}, 0},
      {"without extent", kSquare, {5, 5, 5, 8}, 0},
      {"upside down", kSquare, {5, 8, 6, 2}, 0},
      {"a triangle's tip", {{0, 0}, {10, 0}, {0, 10}}, {5, 0, 10, 10}, 12.5},
      {"across both arms", kU, {0, 1, 10, 3}, 12},
      {"between the arms", kU, {3, 0, 7, 7}, 0},
      {"across the base too", kU, {2, 6, 8, 8}, 12 - 4},
      {"all of it", kU, {0, 0, 10, 10}, 72},
      {"both loops", kEight, {0, 0, 10, 10}, 50},
      {"one loop", kEight, {0, 0, 5, 10}, 25},
      {"both triangles", kTouching, {0, 0, 10, 10}, 50},
      {"a spike has no area", kSpike, {0, 0, 30, 10}, 100},
      {"a line", {{0, 0}, {5, 5}, {10, 10}}, {0, 0, 10, 10}, 0},
  };
  for (const AreaCase& c : cases) {
    EXPECT_NEAR(common_area(c.polygon, c.box), c.area, 1e-9) << c.what;
    EXPECT_NEAR(common_area(reversed(c.polygon), c.box), c.area, 1e-9) << c.what << ", the other way round";
  }
  EXPECT_NEAR(area(kU), 72, 1e-9);
  EXPECT_EQ(area(Points{}), 0);
}

// Two independent ways to the same number: slabs, and counting points of a fine grid.
TEST(Polygon, CommonAreaAgreesWithCountingPoints_ForRandomCrossingOutlines) {
  std::mt19937 draw(7);
  std::uniform_real_distribution<double> place(0, 100);
  for (int round = 0; round < 60; ++round) {
    Points polygon(3 + round % 9);
    for (Point& p : polygon) p = {place(draw), place(draw)};
    Box box{place(draw) / 2, place(draw) / 2, 50 + place(draw) / 2, 50 + place(draw) / 2};
    int hits = 0;
    constexpr int kSteps = 200;
    double dx = (box.x2 - box.x1) / kSteps, dy = (box.y2 - box.y1) / kSteps;
    for (int y = 0; y < kSteps; ++y)
      for (int x = 0; x < kSteps; ++x) hits += contains(polygon, {box.x1 + (x + 0.5) * dx, box.y1 + (y + 0.5) * dy});
    EXPECT_NEAR(common_area(polygon, box), hits * dx * dy, 0.02 * (box.x2 - box.x1) * (box.y2 - box.y1)) << round;
  }
}

}  // namespace
}  // namespace weir::zone
