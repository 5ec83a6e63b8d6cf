// Detection: something that a detector saw, and where. Plain values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir {

// Pixels of the whole picture; x2 and y2 lie outside the box.
struct Box {
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  friend bool operator==(const Box&, const Box&) = default;
};

struct Detection {
  std::string label;
  double score = 0;
  Box box;
  std::vector<std::int64_t> zone_ids = {};  // the include zones that it lies in, by falling priority
  friend bool operator==(const Detection&, const Detection&) = default;
};

}  // namespace weir
