// What must hold of every picture that came out of a decoder, whatever went in: all of it can be read, cut out and
// encoded. Plain functions; any thread.
#pragma once

#include "target.hpp"

#include "weir/motion/gate.hpp"
#include "weir/ports/video_source.hpp"

#include <fmt/format.h>

namespace weir::fuzz {

inline void check_picture(const Picture& picture, motion::MotionGate& gate) {
  int width = picture.width(), height = picture.height();
  std::string size = fmt::format("{} x {}", width, height);
  check(width > 0 && height > 0 && picture.luma() != nullptr && picture.luma_stride() >= width, "a picture of " + size);
  check(std::int64_t{width} * height <= 8192 * 4352, "a picture larger than any level of coding allows: " + size);
  motion::Verdict verdict = gate.look(picture.luma(), picture.luma_stride(), width, height);
  check(verdict.changed_area_px >= 0 && (!verdict.moved || verdict.open), "a verdict that contradicts itself");

  // Cut from everywhere; the number makes the edges odd and even in turn.
  int odd = static_cast<int>(picture.number & 1), part_x = std::max(1, width / 3 - odd),
      part_y = std::max(1, height / 2 - odd);
  std::vector<std::uint8_t> out(64 * 48 * 3);
  for (Region region : {Region{0, 0, width, height}, Region{width - part_x, height - part_y, part_x, part_y},
                        Region{width - 1, height - 1, 1, 1}, Region{std::min(odd, width - 1), 0, 1, height}})
    picture.to_rgb(region, 64, 48, out);
  for (Region region :
       {Region{1, 0, width, height}, Region{0, -1, 1, 1}, Region{0, 0, 0, 1}, Region{INT32_MAX, 0, INT32_MAX, 1}})
    check(!picture.to_rgb(region, 64, 48, out), "a region outside of the picture was cut out of " + size);
  check(!picture.to_rgb({0, 0, 1, 1}, 65, 48, out), "more was cut out than there is room for");
  std::string jpeg = picture.to_jpeg(picture.number % 3 == 0 ? 100 : 0, 80);
  check(jpeg.empty() || jpeg.starts_with("\xFF\xD8"), "a JPEG that is none");
}

}  // namespace weir::fuzz
