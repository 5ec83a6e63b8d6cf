#include "polygon.hpp"

#include <algorithm>
#include <vector>

namespace weir::zone {

namespace {

using camera::Point;

struct Edge {
  Point a, b;
  double x_at(double y) const { return a[0] + (b[0] - a[0]) * (y - a[1]) / (b[1] - a[1]); }
  double y_at(double x) const { return a[1] + (b[1] - a[1]) * (x - a[0]) / (b[0] - a[0]); }
  bool spans(double y) const { return (a[1] <= y) != (b[1] <= y); }
};

std::vector<Edge> edges(Polygon polygon) {
  std::vector<Edge> out;
  for (size_t i = 0; i < polygon.size(); ++i) out.push_back({polygon[i], polygon[(i + 1) % polygon.size()]});
  return out;
}

double cross(Point o, Point p, Point q) { return (p[0] - o[0]) * (q[1] - o[1]) - (p[1] - o[1]) * (q[0] - o[0]); }

bool lies_on(const Edge& edge, Point p) {
  return cross(edge.a, edge.b, p) == 0 && std::min(edge.a[0], edge.b[0]) <= p[0] &&
         p[0] <= std::max(edge.a[0], edge.b[0]) && std::min(edge.a[1], edge.b[1]) <= p[1] &&
         p[1] <= std::max(edge.a[1], edge.b[1]);
}

Box bounds(Polygon polygon) {
  Box box{polygon[0][0], polygon[0][1], polygon[0][0], polygon[0][1]};
  for (const Point& p : polygon)
    box = {std::min(box.x1, p[0]), std::min(box.y1, p[1]), std::max(box.x2, p[0]), std::max(box.y2, p[1])};
  return box;
}

// The heights at which something happens: corners, crossings of two edges, and of an edge with the box's sides.
// Between two neighbours among them the width of what is inside changes linearly.
std::vector<double> events(const std::vector<Edge>& edges, const Box& box) {
  std::vector<double> ys = {box.y1, box.y2};
  auto add = [&](double y) {
    if (y > box.y1 && y < box.y2) ys.push_back(y);
  };
  for (size_t i = 0; i < edges.size(); ++i) {
    const Edge& e = edges[i];
    add(e.a[1]);
    for (double x : {box.x1, box.x2})
      if ((e.a[0] < x) != (e.b[0] < x)) add(e.y_at(x));
    for (size_t j = i + 1; j < edges.size(); ++j) {
      const Edge& f = edges[j];
      double from = cross(f.a, f.b, e.a), to = cross(f.a, f.b, e.b);
      bool crossing = (from < 0) != (to < 0) && (cross(e.a, e.b, f.a) < 0) != (cross(e.a, e.b, f.b) < 0);
      if (crossing) add(e.a[1] + (e.b[1] - e.a[1]) * from / (from - to));
    }
  }
  std::ranges::sort(ys);
  return ys;
}

double width_at(const std::vector<Edge>& edges, double y, const Box& box, std::vector<double>& xs) {
  xs.clear();
  for (const Edge& e : edges)
    if (e.spans(y)) xs.push_back(std::clamp(e.x_at(y), box.x1, box.x2));
  std::ranges::sort(xs);
  double width = 0;
  for (size_t i = 0; i + 1 < xs.size(); i += 2) width += xs[i + 1] - xs[i];
  return width;
}

}  // namespace

bool contains(Polygon polygon, Point point) {
  bool inside = false;
  for (const Edge& e : edges(polygon)) {
    if (lies_on(e, point)) return true;
    if (e.spans(point[1]) && e.x_at(point[1]) > point[0]) inside = !inside;
  }
  return inside;
}

double common_area(Polygon polygon, const Box& box) {
  if (polygon.empty()) return 0;
  Box around = bounds(polygon);
  Box both{std::max(box.x1, around.x1), std::max(box.y1, around.y1), std::min(box.x2, around.x2),
           std::min(box.y2, around.y2)};
  if (!(both.x1 < both.x2 && both.y1 < both.y2)) return 0;
  std::vector<Edge> all = edges(polygon);
  std::vector<double> ys = events(all, both), xs;
  double sum = 0;
  for (size_t i = 0; i + 1 < ys.size(); ++i)
    if (ys[i] < ys[i + 1]) sum += (ys[i + 1] - ys[i]) * width_at(all, (ys[i] + ys[i + 1]) / 2, both, xs);
  return sum;
}

double area(Polygon polygon) { return polygon.empty() ? 0 : common_area(polygon, bounds(polygon)); }

}  // namespace weir::zone
