// Polygon: the outline of a zone, given by its corners in either direction, closed by itself.
//
// It may be concave and may touch or cross itself: what an odd number of its edges encloses is inside (a figure eight
// encloses both of its loops). Edges and corners belong to it. Areas are exact.
// Pure functions; any thread.
#pragma once

#include "weir/camera/config.hpp"
#include "weir/zone/detection.hpp"

#include <span>

namespace weir::zone {

using Polygon = std::span<const camera::Point>;

bool contains(Polygon polygon, camera::Point point);
double area(Polygon polygon);
// The area that the polygon and the box have in common.
double common_area(Polygon polygon, const Box& box);

}  // namespace weir::zone
